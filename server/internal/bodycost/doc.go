// Package bodycost has the tests of what clients cost a server that means to bound it: the body of one request, for which see
// server.Limits.MaxDecodedBytes, and many clients at once, in TestSiege.
package bodycost
