// Package conformance has the table of all recipes: what each of their calls
// does when something goes wrong, and what it costs. What goes wrong is package
// recipetest's.
package conformance
