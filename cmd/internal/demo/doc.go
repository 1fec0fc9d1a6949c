// Package demo has the demonstrations as verbs: what each is told, and what it
// shows. What they do is in the packages below.
package demo
