import ArgumentParser

/// The completion scripts: the parser's script, and an addition for commands after `lock … --`, which the parser does
/// not know.
///
/// This file and `Camerabus` depend on each other on purpose: the `completions` command is one of the commands that its
/// script describes.
enum CompletionScript {
    static func text(_ shell: CompletionShell) -> String {
        let script = Camerabus.completionScript(for: shell)
        switch shell {
        case .bash:
            return script.replacing("complete -o filenames -F _camerabus camerabus", with: "") + bash
        case .zsh:
            return script.replacing(
                "\n_camerabus() {\n", with: "\n_camerabus() {\n\(zshCommands)", maxReplacements: 1
            )
            .replacing(zshOffering, with: zshAssignments + zshOffering, maxReplacements: 1)
        case .fish: return script + fish
        default: return script
        }
    }

    // bash-completion, where it is there, completes the command as if it stood alone.
    private static let bash = #"""

        _camerabus_with_commands() {
            local -i _index
            if [[ "${COMP_WORDS[1]}" = lock ]]; then
                for ((_index = 2; _index < COMP_CWORD; _index++)); do
                    [[ "${COMP_WORDS[_index]}" = -- ]] || continue
                    if declare -F _command_offset >/dev/null; then
                        _command_offset $((_index + 1))
                    elif ((COMP_CWORD == _index + 1)); then
                        mapfile -t COMPREPLY < <(compgen -c -- "${2}")
                    else
                        mapfile -t COMPREPLY < <(compgen -f -- "${2}")
                    fi
                    return
                done
            fi
            _camerabus "${@}"
            # A control's value follows without a blank.
            [[ "${#COMPREPLY[@]}" -eq 1 && "${COMPREPLY[0]}" = *= ]] && compopt -o nospace 2>/dev/null
            return 0
        }

        complete -o filenames -F _camerabus_with_commands camerabus
        """#

    private static let zshCommands = #"""
            local -i dashes="${words[(i)--]}"
            if [[ "${words[2]}" = lock ]] && ((dashes < CURRENT)); then
                shift dashes words
                ((CURRENT -= dashes))
                _normal
                return
            fi

        """#

    private static let zshOffering = "    if [[ \"${#completions[@]}\" -gt 1 ]]; then\n"

    // A control's value follows without a blank. The last element is the parser's own, and no completion.
    private static let zshAssignments = #"""
            local -a assignments=("${(@M)completions:#?*=}")
            if [[ "${#assignments[@]}" -gt 0 ]]; then
                compadd -S '' -a assignments
                completions=("${(@)completions:#?*=}")
            fi

        """#

    private static let fish = #"""

        function __camerabus_command_after_dashes
            set -l tokens (commandline -opc)
            test "$tokens[2]" = lock; and set -l dashes (contains -i -- -- $tokens)
            and complete -C (string join ' ' -- (string escape -- $tokens[(math $dashes + 1)..]) (commandline -ct))
        end
        function __camerabus_is_after_dashes
            set -l tokens (commandline -opc)
            test "$tokens[2]" = lock; and contains -- -- $tokens
        end
        complete -c camerabus -n __camerabus_is_after_dashes -a '(__camerabus_command_after_dashes)'
        """#
}
