package filters

import (
	"math/rand/v2"
	"net/http"
)

// GoAway ends HTTP/2 connections at random, after a request: chance is the part of the requests, from 0 to 1. Requests in progress
// finish, and the client connects again, perhaps to another server behind a load balancer, so that clients spread over all servers.
// A chance of 0 ends no connection. Requests of HTTP/1 pass unchanged.
func GoAway(chance float64) Filter {
	if chance <= 0 {
		return func(next http.Handler) http.Handler { return next }
	}
	return steps(func(p *passage, _ http.Handler) bool {
		if p.r.ProtoMajor == 2 && rand.Float64() < chance {
			p.w.Header().Set("Connection", "close") // net/http sends GOAWAY then
		}
		return true
	})
}
