package authn

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
)

// MaxTokenFileBytes is the maximum size of a token file that ReadTokens reads.
const MaxTokenFileBytes = 16 << 20

// maxTokenWarnings is the number of warnings after which ReadTokens only counts further ones, in one last warning.
const maxTokenWarnings = 100

// ReadTokens reads the users of bearer tokens from the token file of kube-apiserver
// (https://kubernetes.io/docs/reference/access-authn-authz/authentication/#static-token-file). The result is for [StaticTokens].
// The file is CSV with at least three columns. The groups are optional, and columns after them are ignored:
//
//	token,user,uid,"group1,group2,group3"
//
// Fields are used as they are, including spaces. The uid may be empty. Empty lines are skipped; there are no comments.
//
// As in kube-apiserver, a line with an empty token is skipped, and a repeated token replaces the earlier one; there is a warning
// for each such line. A line with fewer than three columns, or that is not CSV, is an error. An empty user name is an error too;
// kube-apiserver accepts it, but here it is not a valid user. A file of more than [MaxTokenFileBytes] is an error. Warnings and
// errors contain no part of the file.
func ReadTokens(r io.Reader) (users map[string]User, warnings []string, err error) {
	bounded := &io.LimitedReader{R: r, N: MaxTokenFileBytes + 1}
	lines := csv.NewReader(bounded)
	lines.FieldsPerRecord, lines.ReuseRecord = -1, true
	users = map[string]User{}
	first := map[string]int{} // line number of each token
	more := 0                 // number of warnings beyond maxTokenWarnings
	warn := func(format string, args ...any) {
		if len(warnings) == maxTokenWarnings {
			more++
			return
		}
		warnings = append(warnings, fmt.Sprintf(format, args...))
	}
	for {
		fields, err := lines.Read()
		switch {
		case bounded.N == 0:
			return nil, nil, fmt.Errorf("token file: it is larger than %d bytes", MaxTokenFileBytes)
		case errors.Is(err, io.EOF) && more > 0:
			return users, append(warnings, fmt.Sprintf("%d more lines are skipped or replace earlier ones", more)), nil
		case errors.Is(err, io.EOF):
			return users, warnings, nil
		case err != nil:
			return nil, nil, fmt.Errorf("token file: %w", err)
		}
		line, _ := lines.FieldPos(0)
		switch {
		case len(fields) < 3:
			return nil, nil, fmt.Errorf("token file: line %d has %d of the at least 3 columns token, user name and user uid", line, len(fields))
		case fields[0] == "":
			warn("line %d has an empty token and is skipped", line)
			continue
		case fields[1] == "":
			return nil, nil, fmt.Errorf("token file: line %d has an empty user name", line)
		}
		if earlier, ok := first[fields[0]]; ok {
			warn("line %d has the token of line %d and replaces it", line, earlier)
		}
		first[fields[0]], users[fields[0]] = line, tokenUser(fields)
	}
}

// tokenUser returns the user of a line, which has at least three fields.
func tokenUser(fields []string) User {
	user := User{Name: fields[1], UID: fields[2]}
	if len(fields) > 3 {
		user.Groups = strings.Split(fields[3], ",")
	}
	return user
}
