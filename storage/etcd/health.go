package etcd

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/keelson-dev/keelson/storage"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// healthTime bounds Health and each request of Ready.
const healthTime = 2 * time.Second

func (b *Backend) healthKey() []byte { return append([]byte(b.opts.Prefix), "/health"...) }

// Health implements storage.Healther: a linearizable read of <Prefix>/health, a key that need not exist, succeeds within two
// seconds.
func (b *Backend) Health(ctx context.Context) error {
	_, err := b.readWithin(ctx, "get", healthTime, b.small, &pb.RangeRequest{Key: b.healthKey(), CountOnly: true})
	return err
}

// Ready implements storage.Readier: Health succeeds, no member has raised an alarm (out of space, damaged data), and the
// member that answers is not too old.
func (b *Backend) Ready(ctx context.Context) error {
	if err := b.Health(ctx); err != nil {
		return err
	}
	var alarms *pb.AlarmResponse
	err := b.call(ctx, "alarms", healthTime, b.small, true, func(ctx context.Context) (err error) {
		alarms, err = b.small.care.Alarm(ctx, &pb.AlarmRequest{Action: pb.AlarmRequest_GET}, b.callOptions...)
		return err
	})
	if err != nil {
		return err
	}
	if err := alarmed(alarms.Alarms); err != nil {
		return err
	}
	var st *pb.StatusResponse
	err = b.call(ctx, "status", healthTime, b.small, true, func(ctx context.Context) (err error) {
		st, err = b.small.care.Status(ctx, &pb.StatusRequest{}, b.callOptions...)
		return err
	})
	if err != nil {
		return err
	}
	return checkVersion(st.Version)
}

// alarmed returns an error if there are alarms.
func alarmed(alarms []*pb.AlarmMember) error {
	space, other := false, []string(nil)
	for _, a := range alarms {
		switch a.Alarm {
		case pb.AlarmType_NONE:
		case pb.AlarmType_NOSPACE:
			space = true
		default:
			other = append(other, fmt.Sprintf("%v of member %x", a.Alarm, a.MemberID))
		}
	}
	switch {
	case len(other) > 0:
		return fmt.Errorf("%w: etcd has alarms: %s", storage.ErrUnavailable, strings.Join(other, ", "))
	case space:
		return fmt.Errorf("%w: etcd has the alarm NOSPACE: compact, defragment, then disarm it", storage.ErrNoSpace)
	}
	return nil
}
