package embedded

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/coreos/go-semver/semver"
	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
	"go.etcd.io/etcd/api/v3/version"
	"go.etcd.io/etcd/client/pkg/v3/fileutil"
)

// claim makes the directory and locks it for this process. etcd itself would wait for ever for a directory in use.
func claim(dir string) (*fileutil.LockedFile, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("the directory cannot be made: %w", err)
	}
	lock, err := fileutil.TryLockFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	switch {
	case errors.Is(err, fileutil.ErrLocked):
		return nil, errors.New("it is in use by another server")
	case err != nil:
		return nil, fmt.Errorf("it cannot be written: %w", err)
	}
	return lock, nil
}

// database is what an etcd's database says about its member and cluster.
type database struct {
	newest  *semver.Version     // the newest version that has written it; nil when unknown
	members map[string][]string // name to peer URLs; a member that has not published its name yet is missing
}

// readDatabase reads the database of the directory, without changing it. A directory without a database is new.
func readDatabase(dir string) (database, error) {
	d := database{members: map[string][]string{}}
	path := filepath.Join(dir, "member", "snap", "db")
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return d, nil
	}
	if err != nil {
		return d, err
	}
	// With so short a timeout there is only one try.
	db, err := bbolt.Open(path, 0, &bbolt.Options{ReadOnly: true, Timeout: 1})
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return d, errors.New("it is in use by another etcd")
	case err != nil:
		return d, fmt.Errorf("%s is no database that can be opened: %w", path, err)
	}
	if err := errors.Join(db.View(d.read), db.Close()); err != nil {
		return d, fmt.Errorf("%s is not the database of an etcd: %w", path, err)
	}
	return d, nil
}

func (d *database) read(tx *bbolt.Tx) error {
	for _, at := range []struct{ bucket, key string }{{"meta", "storageVersion"}, {"cluster", "clusterVersion"}} {
		b := tx.Bucket([]byte(at.bucket))
		if b == nil {
			continue
		}
		value := b.Get([]byte(at.key))
		if len(value) == 0 {
			continue
		}
		v, err := semver.NewVersion(string(value))
		if err != nil {
			return fmt.Errorf("%s: %w", at.key, err)
		}
		if d.newest == nil || d.newest.LessThan(*v) {
			d.newest = v
		}
	}
	b := tx.Bucket([]byte("members"))
	if b == nil {
		return nil
	}
	return b.ForEach(func(_, value []byte) error {
		var m struct {
			Name     string   `json:"name"`
			PeerURLs []string `json:"peerURLs"`
		}
		if err := json.Unmarshal(value, &m); err != nil {
			return fmt.Errorf("members: %w", err)
		}
		if m.Name != "" {
			d.members[m.Name] = m.PeerURLs
		}
		return nil
	})
}

// check returns an error if this build cannot continue with the database, as the member that o describes.
func (d database) check(o Options) error {
	own := semver.New(version.Version)
	if d.newest != nil && (semver.Version{Major: own.Major, Minor: own.Minor}).LessThan(
		semver.Version{Major: d.newest.Major, Minor: d.newest.Minor}) {
		return fmt.Errorf("its data was written by an etcd %d.%d, which is newer than this one, %s: start it with a program built with that etcd",
			d.newest.Major, d.newest.Minor, own)
	}
	urls := o.peerURLs()
	for name, known := range d.members {
		u, there := urls[name]
		if !there {
			return fmt.Errorf("it belongs to a cluster with the member %q, which Name and Peers do not have: use another directory, or change the cluster with etcdctl member",
				name)
		}
		if !slices.Contains(known, u.String()) {
			return fmt.Errorf("its cluster knows the member %q at %q, Peers says %s: change it first with etcdctl member update",
				name, known, u.String())
		}
	}
	return nil
}
