// Package author hands what package coord offers to the authors of recipes on
// to the packages below coord, chiefly to recipe. Users do not meet it: a type
// that embeds an Offer shows none of it.
package author

// Offer is what its owner offers to authors: the owner embeds it, under a name
// that is not exported.
type Offer[Steps any] struct{ steps Steps }

// Make returns the offer of these steps.
func Make[Steps any](steps Steps) Offer[Steps] { return Offer[Steps]{steps} }

func (o Offer[Steps]) offered() Steps { return o.steps }

// Of returns the steps that an owner offers.
func Of[Steps any](owner interface{ offered() Steps }) Steps { return owner.offered() }
