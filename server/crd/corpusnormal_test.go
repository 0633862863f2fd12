package crd_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// normal returns a body without parts that differ between servers or runs: uids, resource versions, current times, ages, and the
// order of unordered lists.
func normal(body any) any {
	switch v := body.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, value := range v {
			switch name {
			case "resourceVersion":
				out[name] = "R"
				continue
			case "uid":
				out[name] = "U"
				continue
			case "managedFields", "causes":
				out[name] = sorted(normal(value))
				continue
			}
			out[name] = normal(value)
		}
		if out["kind"] == "Table" {
			agesOf(out)
		}
		if causes, ok := member(out, "details", "causes").([]any); ok && len(causes) > 1 {
			delete(out, "message") // its parts have another order there
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = normal(item)
		}
		return out
	case string:
		if t, err := time.Parse(time.RFC3339, v); err == nil && time.Since(t).Abs() < 24*time.Hour {
			return "T"
		}
		if strings.Contains(v, `Invalid value: "{`) {
			v = regexp.MustCompile(`(?s)Invalid value: "\{.*(\}|bytes in all\))"?: `).ReplaceAllString(v, "Invalid value: (the object): ")
		}
		if strings.Count(v, "-") < 4 {
			return v
		}
		return regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`).ReplaceAllString(v, "U")
	}
	return body
}

func sorted(list any) any {
	items, _ := list.([]any)
	slices.SortStableFunc(items, func(a, b any) int {
		return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b))
	})
	return list
}

// agesOf replaces the cells of a table's date columns by a constant.
func agesOf(table map[string]any) {
	columns, _ := table["columnDefinitions"].([]any)
	rows, _ := table["rows"].([]any)
	for _, row := range rows {
		cells, _ := member(row, "cells").([]any)
		for i, column := range columns {
			if i < len(cells) && member(column, "type") == "date" {
				if age, ok := cells[i].(string); ok && regexp.MustCompile(`^(\d+[smhdy])+$`).MatchString(age) {
					cells[i] = "A"
				}
			}
		}
	}
}

// without removes the members with a name from all objects.
func without(name string, body any) {
	switch v := body.(type) {
	case map[string]any:
		delete(v, name)
		for _, value := range v {
			without(name, value)
		}
	case []any:
		for _, item := range v {
			without(name, item)
		}
	}
}

// member is a member of members.
func member(value any, names ...string) any {
	for _, name := range names {
		members, _ := value.(map[string]any)
		value = members[name]
	}
	return value
}

// difference describes the first difference of two answers, or returns "".
func difference(path string, got, want any) string {
	g, gotMap := got.(map[string]any)
	w, wantMap := want.(map[string]any)
	if gotMap && wantMap {
		names := map[string]bool{}
		for name := range g {
			names[name] = true
		}
		for name := range w {
			names[name] = true
		}
		var all []string
		for name := range names {
			in, has := g[name]
			other, had := w[name]
			switch {
			case !has:
				all = append(all, fmt.Sprintf("%s.%s is not there, want %s", path, name, short(other)))
			case !had:
				all = append(all, fmt.Sprintf("%s.%s is %s, want nothing", path, name, short(in)))
			default:
				all = append(all, difference(path+"."+name, in, other))
			}
		}
		slices.Sort(all)
		return strings.Join(slices.DeleteFunc(all, func(s string) bool { return s == "" }), "; ")
	}
	gs, gotList := got.([]any)
	ws, wantList := want.([]any)
	if gotList && wantList && len(gs) == len(ws) {
		var all []string
		for i := range gs {
			if d := difference(fmt.Sprintf("%s[%d]", path, i), gs[i], ws[i]); d != "" {
				all = append(all, d)
			}
		}
		return strings.Join(all, "; ")
	}
	if a, b := short(got), short(want); a != b {
		return fmt.Sprintf("%s is %s, want %s", path, a, b)
	}
	return ""
}

func short(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
