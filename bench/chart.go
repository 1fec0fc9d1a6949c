package bench

import (
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// colours of the contenders, which keep theirs in all charts.
var colours = map[string]color.RGBA{
	limit:     {0xbb, 0xbb, 0xbb, 0xff},
	pipelined: {0x88, 0x88, 0x88, 0xff},
	zkcoord:   {0x1b, 0x6e, 0xc2, 0xff},
	local:     {0x0f, 0x3d, 0x70, 0xff},
	lingering: {0x07, 0x20, 0x40, 0xff},

	acknowledged: {0x88, 0x88, 0x88, 0xff},
	bareBatches:  {0x88, 0x88, 0x88, 0xff},
	prefetching:  {0x0f, 0x3d, 0x70, 0xff},
	batches:      {0x07, 0x20, 0x40, 0xff},

	zkLock:  {0x66, 0xb2, 0xe8, 0xff},
	curator: {0xe0, 0x7b, 0x39, 0xff},
	kazoo:   {0x3d, 0x9a, 0x50, 0xff},
	etcd:    {0x8a, 0x5f, 0xb5, 0xff},
	redis:   {0xd6, 0xa0, 0xa0, 0xff},
}

// draw makes a chart of a row's first column: a group of bars for each case.
func (r *report) draw(file string, row row, s *site, who []string) error {
	p := plot.New()
	_, names := row.cases()
	shown := row.shows[0]
	p.Title.Text = row.title + ", " + s.title
	p.Y.Label.Text = shown.title
	p.Title.Padding, p.Y.Min = vg.Points(8), 0
	p.Legend.Top = true
	p.NominalX(names...)
	groups := float64(len(names))
	p.X.Min, p.X.Max = -0.5, groups-0.5+0.4*groups // with room for the legend
	width := vg.Points(300 / (groups * float64(len(who)+1)))
	for i, name := range who {
		bars := make(plotter.Values, len(names))
		for k, kase := range names {
			bars[k] = r.find(s, row, kase, name).Figures[shown.figure] * shown.scale
		}
		chart, err := plotter.NewBarChart(bars, width)
		if err != nil {
			return err
		}
		chart.Color, chart.LineStyle.Width = colours[name], 0
		chart.Offset = width * vg.Length(float64(i)-float64(len(who)-1)/2)
		p.Add(chart)
		p.Legend.Add(name, chart)
	}
	return p.Save(16*vg.Centimeter, 8*vg.Centimeter, file)
}
