// Package proxy is a TCP proxy for tests that understands ZooKeeper's client
// protocol. It stands between a client and a server on the loopback interface
// and causes the faults of a network, each at an exact place.
//
// Faults are aimed at single requests or replies, by opcode and path, and count
// how often they fired:
//
//	lost := p.Inject(proxy.Fault{On: proxy.Creates, Path: dir, Do: proxy.CutOnReply})
//	...
//	<-lost.First()            // the server has applied the create; the client will not hear of it
//	require.Equal(t, 1, lost.Fired())
//
// Conditions last until Heal: Blackhole (per direction: nothing arrives, not
// even the end of the connection, until healed; then what was under way
// arrives), Delay (per direction), Rate, Refuse and Hang (new connections).
// CutAll and Flap break what is connected. Stats counts the effects of the
// conditions: a test can prove that its fault happened.
//
// A proxy made by NewRaw carries any protocol, such as the link from a follower
// to its leader, and knows conditions only.
package proxy
