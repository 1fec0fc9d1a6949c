package bench

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"
)

// A contender answers each line with one:
//
//	prepare TASK   prepared, when the sessions are there and the work goes on
//	run            figures FIGURES, of the time since the command
//	close          closed, when its sessions are
//
// or with "error" and a reason. It ends with its standard input.

// job is a task that is under way.
type job struct {
	run   func() (figures, error)
	close func()
}

// work prepares each kind of task.
var work = map[string]func(context.Context, open, task) (*job, error){
	"contend": contend,
	"hold":    hold,
	"barrier": barrier,
	"queue":   queueItems,
	"chain":   chain,
	"idle":    idle,
	"probe":   probe,
	"attempt": attempt,
	"backlog": turnover,
	"wait":    wait,
}

// childMain is the main function of a contender in Go; its name is the only
// argument.
func childMain(args []string) {
	c := contenderNamed(args[0])
	var current *job
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		words := strings.Fields(lines.Text())
		fmt.Println(answer(c, &current, words[0], words[1:]))
	}
}

func answer(c contender, current **job, command string, rest []string) string {
	var result figures
	var err error
	switch command {
	case "prepare":
		t := parseTask(rest)
		*current, err = work[t.work](context.Background(), c.open, t)
	case "run":
		result, err = (*current).run()
	case "close":
		(*current).close()
	}
	if err != nil {
		return "error " + strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	return map[string]string{"prepare": "prepared", "run": "figures " + result.String(), "close": "closed"}[command]
}
