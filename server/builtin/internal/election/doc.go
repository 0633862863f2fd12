// Package election elects a leader among several processes by a Lease of coordination.k8s.io/v1 that they share. See
// https://kubernetes.io/docs/concepts/architecture/leases/.
//
//	err := election.Run(ctx, leases, election.Options{Namespace: "kube-system", Name: "my-controller"}, func(ctx context.Context) {
//		... // work until ctx ends
//	})
//
// # Rules
//
// The rules are those of client-go's leader election, so that its candidates and those of this package may share a Lease. The
// leader renews the Lease every RetryPeriod. The context of its work ends if renewals fail for RenewDeadline, counted from the
// start of the last successful renewal, or if another candidate holds the Lease. All other candidates read the Lease every
// RetryPeriod. They take it if nobody holds it, or if it has not changed for its leaseDurationSeconds, counted from the moment at
// which they saw its last change.
//
// Clocks of different processes are never compared: the times in the Lease are only informative. The clocks must run at about the
// same speed: within a LeaseDuration they may differ by less than LeaseDuration minus RenewDeadline.
//
// # Limits
//
//   - It is only guaranteed that the context of the work has ended before another candidate leads. Work that goes on after that,
//     and requests in flight, overlap with the work of the next leader.
//   - If somebody deletes the Lease or removes its holder, two candidates may lead for up to a RetryPeriod: another candidate
//     takes the Lease at once, and the old leader notices at its next renewal.
//   - A process that is suspended cannot notice the loss of the Lease before it runs again.
package election
