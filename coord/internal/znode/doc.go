// Package znode is the life of one node of ours: an ephemeral node that this
// client makes, and that must neither be made twice nor be left behind, even if
// replies are lost. It knows nothing of lines, kinds and holds.
//
//	creating   [Create] sends the create until its outcome is known. After a lost
//	           reply it looks, behind a write that the ensemble agreed on, for a
//	           node of the GUID, or of the name and data.
//	live       [Node.Watch] tells its [Owner] when another client deletes the
//	           node or requests it. [Node.Version] distinguishes it from
//	           another client's node of that name, and [Node.Rewritten] tells
//	           whether it is still this one.
//	deleting   [Node.Delete] sends the deletion until the node or its session is
//	           gone. After a lost reply it looks first whether another has the
//	           name by now.
//	gone       [Node.Forget]: any node of its name from now on was made late.
//
// A create that was found not to have been carried out can be carried out
// later all the same, in each of these states: late.go.
//
// [Certain] sends a request for a caller who may leave before the outcome is
// known. [Send] is the one engine for requests whose reply can be lost. All of
// the above, and the transactions of package coord that must be carried out
// once, are sent by it.
package znode
