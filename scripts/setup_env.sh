# Sourced from the repository's root: `. scripts/setup_env.sh EXTRAS` makes, completes and activates a virtual
# environment with this package and the given extras of pyproject.toml (for example `plot` or `test,plot`).
#
#   ACPO_TRL_VENV    its folder; default .venv. An environment that has torch keeps it.
#   ACPO_TRL_PYTHON  the interpreter that creates it; default python3.
#   ACPO_TRL_TORCH   what pip is to install as torch; default torch==2.13.0. It may hold pip options.

setup_env() {
    local extras=$1 venv=${ACPO_TRL_VENV:-.venv} python=${ACPO_TRL_PYTHON:-python3} begin=$SECONDS key stamp
    step() { echo "[$((SECONDS - begin)) s] $1"; }

    # Written last, so an interrupted installation is taken up again; names the clone, whose code is used in place.
    key=$({ pwd; cat pyproject.toml; } | cksum | cut -d ' ' -f 1)
    stamp=$venv/.acpo_trl-$key-$extras
    if [ ! -e "$stamp" ]; then
        if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
            echo "$python: not found or older than Python 3.10; set ACPO_TRL_PYTHON to a newer interpreter." >&2
            return 1
        fi
        if [ ! -x "$venv/bin/python" ]; then
            step "Creating the environment $venv with $("$python" --version)"
            "$python" -m venv "$venv" || return 1
        fi
        install_torch || return 1
        step "Installing acpo_trl with the extras $extras"
        "$venv/bin/python" -m pip install -e ".[$extras]" || return 1
        find "$venv" -maxdepth 1 -name '.acpo_trl-*' ! -name ".acpo_trl-$key-*" -delete
        touch "$stamp"
    fi
    . "$venv/bin/activate"
    step "Environment $venv is ready"
}

# Apart from the package, because which build of torch fits is not a requirement that a package can state.
install_torch() {
    local torch=${ACPO_TRL_TORCH:-torch==2.13.0}
    if "$venv/bin/python" -c 'import importlib.util, sys; sys.exit(importlib.util.find_spec("torch") is None)'; then
        step "Keeping the torch of $venv"
        return
    fi
    step "Installing $torch"
    if [ "$(uname)" = Linux ] && ! command -v nvidia-smi >/dev/null; then
        echo "No NVIDIA GPU found: the CPU build of torch (200 MB) is enough. If pip starts a larger download, stop it and"
        echo "set ACPO_TRL_TORCH to the arguments that pytorch.org lists for your system and CPU, then run this again."
    fi
    # shellcheck disable=SC2086  # options and requirement are separate words
    "$venv/bin/python" -m pip install $torch
}

setup_env "$1"
