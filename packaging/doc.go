// Package packaging has what a release is made with, beside scripts/dist.sh,
// and its tests.
package packaging
