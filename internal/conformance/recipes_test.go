package conformance_test

import "testing"

// recipes are all that there are.
var recipes = map[string]func(t *testing.T){
	"mutex": mutex, "revocable": revocable, "shared lock": sharedLock, "multi-lock": multiLock,
	"semaphore": semaphores, "election": elections, "slots": numbers,
	"barrier": barriers, "double barrier": doubleBarriers, "queue": queues, "once": jobs, "cron": schedules,
	"shards": keys, "group": groups, "value": values, "counter": counters,
}

func TestEveryCallOfEveryRecipeKeepsTheRules(t *testing.T) {
	for name, run := range recipes {
		t.Run(name, run)
	}
}
