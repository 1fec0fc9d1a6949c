module github.com/zkcoord/zkcoord/internal/fencetest

go 1.25.0

require (
	github.com/go-sql-driver/mysql v1.9.3
	github.com/johannesboyne/gofakes3 v1.2.0
	github.com/lib/pq v1.10.9
	github.com/mattn/go-sqlite3 v1.14.32
	github.com/stretchr/testify v1.12.1
	github.com/zkcoord/zkcoord v0.0.0
)

require (
	filippo.io/edwards25519 v1.1.0 // indirect
	github.com/go-zookeeper/zk v1.0.4 // indirect
	github.com/hashicorp/errwrap v1.1.0 // indirect
	github.com/hashicorp/go-multierror v1.1.1 // indirect
	github.com/ryszard/goskiplist v0.0.0-20150312221310-2dfbae5fcf46 // indirect
	go.shabbyrobe.org/gocovmerge v0.0.0-20230507111327-fa4f82cfbf4d // indirect
	go.uber.org/goleak v1.3.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/tools v0.8.0 // indirect
)
