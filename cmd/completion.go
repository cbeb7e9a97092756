package cmd

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newCompletionCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "completion bash|zsh|fish|powershell",
		Long: `Print a completion script. In bash it completes git meta as well as git-meta.

` + exitStatus,
		Example: `  source <(git meta completion bash)
  git meta completion zsh > "${fpath[1]}/_git-meta"
  git meta completion fish > ~/.config/fish/completions/git-meta.fish`,
		Args:      takes(1, "SHELL"),
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		RunE: func(c *cobra.Command, args []string) error {
			root := Tree()
			switch args[0] {
			case "bash":
				if err := root.GenBashCompletionV2(a.Out, true); err != nil {
					return err
				}
				_, err := fmt.Fprint(a.Out, bashGitCompletion)
				return err
			case "zsh":
				return root.GenZshCompletion(a.Out)
			case "fish":
				return root.GenFishCompletion(a.Out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(a.Out)
			}
			return usageOf(c, "no completion for the shell %q", args[0])
		},
	}
}

// bashGitCompletion is what git's own completion calls for "git meta …". It presents the
// command line as that of git-meta.
const bashGitCompletion = `
_git_meta()
{
    local i=1
    while [[ $i -lt ${#COMP_WORDS[@]} && ${COMP_WORDS[i]} != meta ]]; do
        ((i++))
    done
    COMP_WORDS=(git-meta "${COMP_WORDS[@]:i+1}")
    ((COMP_CWORD -= i))
    COMP_LINE="${COMP_WORDS[*]}"
    COMP_POINT=${#COMP_LINE}
    __start_git-meta
}
`
