package handlers

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// respondOne answers with one object, in the form f.
func (c *call) respondOne(code int, it item, f form) error {
	a := new(struct {
		encoding
		body
	})
	c.beginEncoding(&a.encoding, f)
	it = c.converted(c.ctx, c.remembered(it))
	if !a.plain() {
		text, err := a.alone(it)
		if err == nil {
			c.respondBytes(&a.body, code, text, f)
		}
		return err
	}
	buf := c.takeBuffer()
	text, err := a.appendText(*buf, it)
	text = append(text, '\n')
	*buf = text
	if err == nil {
		c.respondBytes(&a.body, code, text, f)
	}
	c.giveBuffer(buf) // not when a write has failed: one of HTTP/2 may be reading it still
	return err
}

// respondBytes answers with a body; out is the place for it.
func (c *call) respondBytes(out *body, code int, text []byte, f form) {
	c.beginBody(out, code, f.Format.MediaType(), int64(len(text)))
	defer out.close()
	out.write(text)
	out.end()
}

// respondList answers with a list, in the form f.
func (c *call) respondList(lm metav1.ListMeta, src source, f form) error {
	buf := c.takeBuffer()
	err := c.newList(f, src).respond(c, lm, buf)
	c.giveBuffer(buf) // as in respondOne
	return err
}
