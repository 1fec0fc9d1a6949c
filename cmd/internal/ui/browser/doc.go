// Package browser tests the page of the verb ui in Chromium, with the command
// as people get it. It is a module of its own for the sake of what drives the
// browser.
package browser
