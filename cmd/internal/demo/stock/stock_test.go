//go:build linux || darwin || freebsd || openbsd

package stock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/zkcoord/zkcoord/internal/coordtest"
)

const roleVariable = "STOCK_TEST_ROLE"

func TestMain(m *testing.M) {
	role := os.Getenv(roleVariable)
	if role == "" {
		goleak.VerifyTestMain(m)
		return
	}
	id, _ := strconv.Atoi(os.Args[1])
	s := Seller{ID: id, File: os.Args[2], In: os.Stdin, Out: os.Stdout, Lock: map[string]Lock{
		"locked": lockedByFile(os.Args[2] + ".lock"), "unlocked": unlocked, "broken": broken,
	}[role]}
	if err := s.Run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func unlocked(_ context.Context, do func(int64, func() error) error) error {
	return do(0, func() error { return nil })
}

func broken(context.Context, func(int64, func() error) error) error {
	return errors.New("no lock to be had")
}

// lockedByFile uses a lock that the kernel immediately takes from a killed
// process.
func lockedByFile(path string) Lock {
	token := int64(0)
	return func(_ context.Context, do func(int64, func() error) error) error {
		fd, err := unix.Open(path, unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		if err := unix.Flock(fd, unix.LOCK_EX); err != nil {
			return err
		}
		var before [20]byte
		n, _ := unix.Pread(fd, before[:], 0)
		token, _ = strconv.ParseInt(string(before[:n]), 10, 64)
		token++
		if _, err := unix.Pwrite(fd, []byte(strconv.FormatInt(token, 10)), 0); err != nil {
			return err
		}
		return do(token, func() error { return nil })
	}
}

// audience notes what is told of a shop.
type audience struct {
	told strings.Builder
	show func(sold int)
}

func (a *audience) Tell(format string, args ...any) { fmt.Fprintf(&a.told, format+"\n", args...) }

func (a *audience) Show(sold, _ int) {
	if a.show != nil {
		a.show(sold)
	}
}

func (*audience) Mark(int) {}

func shop(t *testing.T, role string, sellers, units, kills int) (*Shop, *audience) {
	watching, file := &audience{}, filepath.Join(t.TempDir(), "stock")
	return &Shop{
		Sellers: sellers, Stock: units, Kills: kills, File: file, Audience: watching,
		Command: func(id int) (*exec.Cmd, error) {
			cmd := exec.Command(os.Args[0], strconv.Itoa(id), file)
			cmd.Env = append(os.Environ(), roleVariable+"="+role)
			return cmd, nil
		},
	}, watching
}

// run has the shop sell everything. How long others waited does not count.
func run(t *testing.T, s *Shop) Result {
	t.Helper()
	result, err := s.Run(coordtest.Within(t, time.Minute))
	require.NoError(t, err)
	result.MaxGap = 0
	return result
}

func TestUnderALockEveryUnitIsSoldOnceThoughSellersAreKilled(t *testing.T) {
	s, watching := shop(t, "locked", 4, 60, 6)
	result := run(t, s)
	require.Equal(t, Result{Sold: 60, Kills: 6, Growing: true}, result)
	require.Equal(t, 0, result.Oversold(60))
	for _, point := range points {
		require.Equal(t, 2, strings.Count(watching.told.String(), string(point)), point)
	}
}

func TestWithoutALockUnitsAreSoldSeveralTimes(t *testing.T) {
	s, _ := shop(t, "unlocked", 4, 100, 1)
	result := run(t, s)
	require.Equal(t, 0, result.Left)
	require.Positive(t, result.Oversold(100))
	require.False(t, result.Growing)
}

func TestAllKillsAreMadeHoweverSmallTheStock(t *testing.T) {
	s, _ := shop(t, "locked", 3, 1, 5)
	require.Equal(t, Result{Sold: 1, Kills: 5, Growing: true}, run(t, s))
}

func TestAShopWhoseSellersFailGivesUp(t *testing.T) {
	s, _ := shop(t, "broken", 2, 10, 0)
	_, err := s.Run(coordtest.Within(t, time.Minute))
	require.ErrorContains(t, err, "too many processes failed")
}

func TestAShopEndsWithItsContextAndStillCounts(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	s, watching := shop(t, "locked", 2, 1_000_000, 0)
	closing := errors.New("closing time")
	watching.show = func(sold int) {
		if sold == 10 {
			cancel(closing)
		}
	}
	result, err := s.Run(ctx)
	require.ErrorIs(t, err, closing)
	require.GreaterOrEqual(t, result.Sold, 10)
	require.Equal(t, 0, result.Oversold(1_000_000))
	require.Equal(t, 1_000_000, result.Sold+result.Left)
}

func TestALedgerIsReadAsItWasWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stock")
	want := Ledger{Left: 3, Sales: []Sale{{1, 1, 40}, {2, 1, 41}, {1, 2, 1 << 40}}}
	require.NoError(t, want.Write(path, path+".new"))
	got, err := ReadLedger(path)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.NoFileExists(t, path+".new")
}

func TestADamagedLedgerIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stock")
	for _, content := range []string{
		"", `{"Left":"many"}`, `{"Left":1,"Sales":[{"Seller":1,"Number":2`, `{"Left":1,"Sales":[{"Token":"x"}]}`,
	} {
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		_, err := ReadLedger(path)
		require.ErrorContains(t, err, path, "%q", content)
	}
}

func TestASaleCountsOnceWhicheverSellersReportIt(t *testing.T) {
	l := Ledger{Left: 7, Sales: []Sale{{1, 1, 1}, {2, 1, 2}}}
	require.Equal(t, 2, l.sold([]Sale{{1, 1, 1}}), "the second seller was killed before it could tell")
	require.Equal(t, 3, l.sold([]Sale{{1, 1, 1}, {1, 2, 1}}), "the first one's second sale was overwritten")
}
