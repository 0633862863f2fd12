package authn

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// MaxPasswordFileBytes is the maximum size of a password file that ReadPasswords reads.
const MaxPasswordFileBytes = 16 << 20

// Password is a user with a password.
type Password struct {
	Password string
	User     User // its Name is the one that the client sends
}

// ReadPasswords reads the users of a password file as kube-apiserver read it before 1.19. The result is for [BasicAuth]. The file is
// CSV with at least three columns. The groups are optional, and columns after them are ignored:
//
//	password,user,uid,"group1,group2,group3"
//
// Fields are used as they are, including spaces. Empty lines are skipped; there are no comments. A line with fewer than three
// columns, with an empty password or an empty user name, or with the user of an earlier line is an error, and so is a file of more
// than [MaxPasswordFileBytes]. Errors contain no part of the file.
func ReadPasswords(r io.Reader) ([]Password, error) {
	bounded := &io.LimitedReader{R: r, N: MaxPasswordFileBytes + 1}
	lines := csv.NewReader(bounded)
	lines.FieldsPerRecord = -1
	var users []Password
	first := map[string]int{} // line number of each user
	for {
		fields, err := lines.Read()
		switch {
		case bounded.N == 0:
			return nil, fmt.Errorf("password file: it is larger than %d bytes", MaxPasswordFileBytes)
		case errors.Is(err, io.EOF):
			return users, nil
		case err != nil:
			return nil, fmt.Errorf("password file: %w", err)
		}
		line, _ := lines.FieldPos(0)
		switch {
		case len(fields) < 3:
			return nil, fmt.Errorf("password file: line %d has %d of the at least 3 columns password, user name and user uid", line, len(fields))
		case fields[0] == "":
			return nil, fmt.Errorf("password file: line %d has an empty password", line)
		case fields[1] == "":
			return nil, fmt.Errorf("password file: line %d has an empty user name", line)
		case first[fields[1]] > 0:
			return nil, fmt.Errorf("password file: line %d has the user of line %d", line, first[fields[1]])
		}
		first[fields[1]] = line
		users = append(users, Password{fields[0], tokenUser(fields)})
	}
}

// BasicAuth authenticates requests by the name and password of a user, in the header "Authorization: Basic" of RFC 7617. The result
// is an error if they are not those of a user, or if the header cannot be read. Passwords are stored and compared as keyed hashes;
// a request with the name of no user takes the same time as one with a wrong password. The
// users are copied.
func BasicAuth(users []Password) Authenticator {
	b := &basicAuth{users: make(map[string]basicUser, len(users)), key: make([]byte, sha256.Size)}
	_, _ = rand.Read(b.key) // never fails
	for _, one := range users {
		b.users[one.User.Name] = basicUser{b.hash(one.Password), *one.User.Clone()}
	}
	return b
}

type basicAuth struct {
	key   []byte
	users map[string]basicUser
}

type basicUser struct {
	hash []byte
	user User
}

var errPassword = errors.New("wrong name or password")

func (b *basicAuth) hash(password string) []byte {
	h := hmac.New(sha256.New, b.key)
	_, _ = io.WriteString(h, password) // never fails
	return h.Sum(nil)
}

// Authenticate implements Authenticator.
func (b *basicAuth) Authenticate(r *http.Request) (*Response, error) {
	if scheme, _, _ := strings.Cut(strings.TrimSpace(r.Header.Get("Authorization")), " "); !strings.EqualFold(scheme, "basic") {
		return nil, nil
	}
	name, password, ok := r.BasicAuth()
	if !ok {
		return nil, errors.New("the Authorization header of a basic authentication cannot be read")
	}
	known := b.users[name]
	if !hmac.Equal(b.hash(password), known.hash) || known.user.Name == "" {
		return nil, errPassword
	}
	return &Response{User: known.user}, nil
}
