"""`services.nginx` of NixOS in front of a service of the same file."""

from __future__ import annotations

import pytest

from kvlint.pipeline import check_files

SERVER = (
    '  systemd.services.chat.serviceConfig.ExecStart = "${pkgs.uv}/bin/uvx --from vllm==0.11.0 vllm serve Qwen/Qwen3-8B'
    ' --max-model-len 16384 --max-num-seqs 8 --port 8001";\n'
)


def said(nginx: str) -> list[tuple[str, str]]:
    report = check_files(
        {"host.nix": f"{{ pkgs, ... }}: let most = 64; in {{\n{SERVER}  services.nginx = {{ {nginx} }};\n}}\n"}
    )
    return [(each.rule, each.text) for each in report.findings if each.severity != "note"]


TOTAL = 'appendHttpConfig = "limit_conn_zone $server_name zone=all:1m;"; virtualHosts.chat.locations."/" = {'


@pytest.mark.parametrize(
    ("nginx", "found"),
    [
        (f'{TOTAL} proxyPass = "http://127.0.0.1:8001"; extraConfig = "limit_conn all 64;"; }};', ["64"]),
        (f'{TOTAL} proxyPass = "http://127.0.0.1:8001"; extraConfig = "limit_conn all 8;"; }};', []),
        (f'{TOTAL} proxyPass = "http://127.0.0.1:8002"; extraConfig = "limit_conn all 64;"; }};', []),
        (
            'upstreams.chat = { extraConfig = "zone chat 64k;"; servers."127.0.0.1:8001".max_conns = most; };'
            ' virtualHosts.chat.locations."/".proxyPass = "http://chat";',
            ["64"],
        ),
        (
            'upstreams.chat.servers = { "127.0.0.1:8001" = { backup = true; }; };'
            ' virtualHosts.chat.locations."/".proxyPass = "http://chat";',
            [],
        ),
        ('virtualHosts.site = { root = "/srv"; };', []),
    ],
)
def test_limits(nginx: str, found: list[str]) -> None:
    assert said(nginx) == [("width-below-admission", text) for text in found]
