# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Completions of bash, zsh and fish, from the commands that manuals.py has read."""

HEAD = "# Generated from `rankscope COMMAND --help`.\n"


def longs(command):
    return [name for option in command.options for name in option.names if name.startswith("--")]


def with_choices(command):
    for option in command.options:
        if option.choices:
            yield [name for name in option.names if name.startswith("--")], option.choices


def words_of(command):
    return [word for positional in command.positionals for word in positional.choices]


def bash(commands):
    lines = [HEAD.rstrip(), "_rankscope() {", '  local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} i', "  COMPREPLY=()",
             "  if ((COMP_CWORD == 1)); then",
             f"    COMPREPLY=($(compgen -W '{' '.join(command.name for command in commands)} --help --version' -- \"$word\"))", "    return", "  fi",
             "  case ${COMP_WORDS[1]} in"]
    for command in commands:
        lines += [f"    {command.name})"]
        if command.name == "run":  # behind its own options stands another command
            lines += ["      for ((i = 2; i < COMP_CWORD; i++)); do",
                      "        if [[ ${COMP_WORDS[i]} == -- ]]; then _command_offset $((i + 1)) 2>/dev/null; return; fi", "      done"]
        choices = list(with_choices(command))
        if choices:
            lines += ["      case $previous in"]
            lines += [f"        {'|'.join(names)}) COMPREPLY=($(compgen -W '{' '.join(values)}' -- \"$word\")); return ;;"
                      for names, values in choices]
            lines += ["      esac"]
        lines += ["      if [[ $word == -* ]]; then", f"        COMPREPLY=($(compgen -W '{' '.join(longs(command))}' -- \"$word\"))", "        return", "      fi"]
        if words_of(command):
            lines += [f"      COMPREPLY=($(compgen -W '{' '.join(words_of(command))}' -- \"$word\"))", "      return"]
        lines += ["      ;;"]
    lines += ["  esac", '  COMPREPLY=($(compgen -f -- "$word"))', "}", "complete -o filenames -F _rankscope rankscope"]
    return "\n".join(lines) + "\n"


def quoted(text):
    return text.replace("'", "'\\''").replace("[", "(").replace("]", ")").replace(":", " -")


def zsh(commands):
    lines = ["#compdef rankscope", HEAD.rstrip(), "local -a commands", "commands=("]
    lines += [f"  '{command.name}:{quoted(command.what)}'" for command in commands]
    lines += [")", "if ((CURRENT == 2)); then", "  _describe command commands", "  return", "fi", "case $words[2] in"]
    for command in commands:
        lines += [f"  {command.name})", "    shift words", "    ((CURRENT--))", "    _arguments -s \\"]
        for option in command.options:
            for name in option.names:
                if name.startswith("--"):
                    action = f":value:({' '.join(option.choices)})" if option.choices else ":value:_files" if option.value else ""
                    lines += [f"      '*{name}[{quoted(option.text)}]{action}' \\"]
        words = words_of(command)
        rest = f"'1:word:({' '.join(words)})'" if words else "'*:::command:_normal'" if command.name == "run" else "'*:file:_files'"
        lines += [f"      {rest}", "    ;;"]
    return "\n".join([*lines, "esac"]) + "\n"


def fish(commands):
    def escape(text):
        return text.replace("\\", "\\\\").replace("'", "\\'")

    lines = [HEAD.rstrip()]
    lines += [f"complete -c rankscope -f -n __fish_use_subcommand -a {command.name} -d '{escape(command.what)}'" for command in commands]
    for command in commands:
        seen = f"-n '__fish_seen_subcommand_from {command.name}'"
        for option in command.options:
            for name in option.names:
                if name.startswith("--"):
                    takes = f" -x -a '{' '.join(option.choices)}'" if option.choices else " -r" if option.value else ""
                    lines += [f"complete -c rankscope {seen} -l {name[2:]}{takes} -d '{escape(option.text)}'"]
        if words_of(command):
            lines += [f"complete -c rankscope {seen} -f -a '{' '.join(words_of(command))}'"]
    return "\n".join(lines) + "\n"
