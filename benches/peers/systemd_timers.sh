#!/usr/bin/env bash
# Starts COUNT timers for the time AT in a systemd of its own, in namespaces of its own. Each runs LINE, as exactly as systemd can.
# Needs root: unshare --pid --fork --mount --mount-proc --kill-child ./systemd_timers.sh AT COUNT LINE
set -euo pipefail
mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/system /run/user/0 /run/home/.config/systemd/user
chmod 700 /run/user/0
export XDG_RUNTIME_DIR=/run/user/0 HOME=/run/home USER=root
units=$HOME/.config/systemd/user
printf '[Timer]\nOnCalendar=%s\nAccuracySec=1us\nUnit=say@%%i.service\n' "$1" >"$units/say@.timer"
printf "[Service]\nType=oneshot\nExecStart=/bin/bash -c '%s'\n" "$3" >"$units/say@.service"
env -i PATH="$PATH" HOME="$HOME" XDG_RUNTIME_DIR="$XDG_RUNTIME_DIR" /lib/systemd/systemd --user </dev/null >/dev/null 2>&1 &
until systemctl --user is-system-running 2>/dev/null | grep -qE 'running|degraded'; do sleep 0.1; done
seq -f 'say@%g.timer' "$2" | xargs systemctl --user start
wait
