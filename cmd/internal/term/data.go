package term

import "unicode/utf8"

// NodeData is a node's data in JSON: text as it is, and other bytes in base 64,
// since JSON would replace them.
type NodeData struct {
	Data   *string `json:"data,omitempty"`
	Base64 []byte  `json:"data_base64,omitempty"`
}

func DataOf(data []byte) NodeData {
	if raw := NotText(data); raw != nil {
		return NodeData{Base64: raw}
	}
	text := string(data)
	return NodeData{Data: &text}
}

// NotText is data that JSON cannot carry as they are, and nil for those that it
// can.
func NotText(data []byte) []byte {
	if utf8.Valid(data) {
		return nil
	}
	return data
}
