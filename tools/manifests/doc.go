// Package manifests has the test of the Kubernetes manifests that the documents
// show, in a module of its own for the types of Kubernetes.
package manifests
