// Package election lets one of several processes lead, by a Lease of coordination.k8s.io/v1 that they share: see
// https://kubernetes.io/docs/concepts/architecture/leases/.
//
//	err := election.Run(ctx, leases, election.Options{Namespace: "kube-system", Name: "my-controller"}, func(ctx context.Context) {
//		... // work until ctx ends
//	})
//
// # The rules
//
// They are those of client-go's leader election, so that its candidates and these may share a Lease. Who leads renews the
// Lease every RetryPeriod. If that fails for RenewDeadline, counted from the moment the last successful renewal was begun,
// or somebody else is found to hold the Lease, the context of the work ends. Everybody else looks at the Lease every
// RetryPeriod, and takes it when it is not held, or has not changed for as long as its leaseDurationSeconds says, counted
// from the moment its last change was seen.
//
// No clock is compared with another: times that others wrote into the Lease are for humans. What is asked of clocks is
// that they run about as fast: within a LeaseDuration they differ by less than it is longer than RenewDeadline.
//
// # What will bite
//
//   - That the context of the work has ended is all that is promised before another leads. Work that goes on regardless, or
//     has a request under way, overlaps with the next leader's.
//   - Who deletes the Lease, or takes its holder out, lets two lead for up to a RetryPeriod: another takes it at once, and
//     the leader does not know before it renews.
//   - A process that is stopped and continued is not noticed by itself before it runs again.
package election
