// Package browser tests the page of the verb ui in Chromium, with the real
// command. It is a module of its own because it needs the library that drives
// the browser.
package browser
