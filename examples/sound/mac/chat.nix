# The chat model of the office's Mac Studio, as a nix-darwin launchd agent.
{ config, pkgs, ... }:

let
  # kvlint: ignore[untrimmable-cache] conversations here are continued, never edited
  model = "lmstudio-community/Qwen3.8-27B-MLX-4bit";
  width = 2;
  port = 8101;
in
{
  environment.systemPackages = [ pkgs.uv ];

  launchd.user.agents.chat = {
    serviceConfig = {
      # kvlint: window=98304 streams=2
      ProgramArguments = [
        "${pkgs.uv}/bin/uvx"
        "--from"
        "mlx-lm==0.32.2"
        "mlx_lm.server"
        "--model"
        model
        "--port"
        (toString port)
        "--decode-concurrency"
        (toString width)
        "--prompt-concurrency"
        (toString width)
        "--prompt-cache-bytes"
        "13958643712"
      ];
      RunAtLoad = true;
      KeepAlive = true;
      StandardErrorPath = "/var/log/chat.log";
    };
  };
}
