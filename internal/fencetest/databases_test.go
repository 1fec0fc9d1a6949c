package fencetest

import (
	"cmp"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/lib/pq"
	_ "github.com/mattn/go-sqlite3"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord/fence"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// database is one that the tests use.
type database struct {
	dialect fence.Dialect
	driver  string
	serial  string // the type of a column that counts up

	// server is where Debian has the server's program, of any version; "" if
	// the tests are their own server.
	server string

	// start prepares a folder, and returns the server's command.
	start func(program, folder string) (*exec.Cmd, error)

	// source is the driver's name of the database that lives in a folder.
	source func(folder string) string

	folder  string // where it is
	missing error  // why it is not there
}

var databases = map[string]*database{
	"PostgreSQL": {
		dialect: fence.PostgreSQL, driver: "postgres", serial: "BIGSERIAL PRIMARY KEY",
		server: "/usr/lib/postgresql/*/bin/postgres",
		start: func(program, folder string) (*exec.Cmd, error) {
			initdb := exec.Command(filepath.Join(filepath.Dir(program), "initdb"), "-D", folder+"/data", "-U", "fence",
				"-A", "trust",
				"-E", "UTF8", "--locale", "C", "--no-sync")
			own(initdb)
			if out, err := initdb.CombinedOutput(); err != nil {
				return nil, fmt.Errorf("initdb: %w\n%s", err, out)
			}
			return exec.Command(program, "-D", folder+"/data", "-k", folder, "-c", "listen_addresses=", "-c", "fsync=off"), nil
		},
		source: func(folder string) string { return "host=" + folder + " user=fence dbname=postgres sslmode=disable" },
	},
	"MariaDB": {
		dialect: fence.MySQL, driver: "mysql", serial: "BIGINT AUTO_INCREMENT PRIMARY KEY",
		server: "/usr/sbin/mariadbd",
		start: func(program, folder string) (*exec.Cmd, error) {
			mkdir := exec.Command("mkdir", "-p", folder+"/data/fence")
			own(mkdir)
			if err := mkdir.Run(); err != nil {
				return nil, err
			}
			return exec.Command(program, "--no-defaults", "--datadir="+folder+"/data", "--socket="+folder+"/socket",
				"--pid-file="+folder+"/pid",
				"--skip-networking", "--skip-grant-tables", "--innodb-flush-log-at-trx-commit=0",
				"--innodb-buffer-pool-size=8M"), nil
		},
		source: func(folder string) string { return "root@unix(" + folder + "/socket)/fence" },
	},
	"SQLite": {
		dialect: fence.SQLite, driver: "sqlite3", serial: "INTEGER PRIMARY KEY AUTOINCREMENT",
		source: func(folder string) string {
			return folder + "/db?_busy_timeout=60000&_journal_mode=WAL&_synchronous=OFF"
		},
	},
}

// own makes a server's process one that dies with the tests, and not root's:
// PostgreSQL does not run as root.
func own(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if os.Getuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody(), Gid: nobody()}
	}
}

func nobody() uint32 {
	if u, err := user.Lookup("nobody"); err == nil {
		if id, err := strconv.ParseUint(u.Uid, 10, 32); err == nil {
			return uint32(id)
		}
	}
	return 65534
}

// The parent-death signal comes when the thread ends that has started the
// server: the main one, which TestMain runs on.
func init() { runtime.LockOSThread() }

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	for name, db := range databases {
		folder, err := os.MkdirTemp("", "fence-")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(folder)
		db.folder = folder
		if db.server == "" {
			continue
		}
		found, err := filepath.Glob(db.server)
		if err != nil {
			panic(err)
		}
		if len(found) == 0 || os.Getenv(zktest.Switch) == "embedded" {
			db.missing = fmt.Errorf("%s is not installed, or not wanted", name)
			continue
		}
		stop, err := db.startServer(found[len(found)-1])
		if err != nil {
			panic(fmt.Errorf("%s: %w", name, err))
		}
		defer stop()
	}
	return m.Run()
}

func (db *database) startServer(program string) (stop func(), err error) {
	if os.Getuid() == 0 {
		if err := os.Chown(db.folder, int(nobody()), int(nobody())); err != nil {
			return nil, err
		}
	}
	cmd, err := db.start(program, db.folder)
	if err != nil {
		return nil, err
	}
	own(cmd)
	log, err := os.Create(db.folder + "/log")
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	return func() {
		_ = cmd.Process.Signal(syscall.SIGKILL)
		_ = cmd.Wait()
	}, cmd.Start()
}

// each runs a test on each database that is there, with a fence and a table
// "log" of names and tokens, of this test's own.
func each(t *testing.T, f func(s scene)) {
	for name, db := range databases {
		t.Run(name, func(t *testing.T) {
			if err := db.missing; err != nil {
				if all := os.Getenv(zktest.Switch); all == "all" || (all == "" && os.Getenv("CI") != "") {
					t.Fatal(err)
				}
				t.Skip(err)
			}
			pool, err := sql.Open(db.driver, db.source(db.folder))
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, pool.Close()) })
			var down error
			up := func() bool { down = pool.PingContext(t.Context()); return down == nil }
			zktest.Eventually(t, time.Minute, up, "%v\n%s", &down, db.log())
			s := scene{T: t, db: pool, tables: fmt.Sprint("t", time.Now().UnixNano())}
			s.fence, err = fence.NewSQL(db.dialect, s.tables)
			require.NoError(t, err)
			s.exec(s.fence.Schema())
			s.exec(s.fence.Schema()) // again
			s.exec("CREATE TABLE " + s.tables + "log (id " + db.serial + ", name VARCHAR(20), token BIGINT)")
			f(s)
		})
	}
}

func (db *database) log() string {
	text, err := os.ReadFile(db.folder + "/log")
	return cmp.Or(string(text), fmt.Sprint(err))
}

// scene is a database with tables of a test.
type scene struct {
	*testing.T
	db     *sql.DB
	fence  fence.SQL
	tables string
}

func (s scene) exec(statement string) {
	s.Helper()
	_, err := s.db.ExecContext(s.Context(), statement)
	require.NoError(s, err)
}
