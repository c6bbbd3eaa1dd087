// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Draws one board with the components of Grafana's own panels, from window.board = {board, frames: {panel id: [[series]]}, from, to}.
// Grafana's rules for units, thresholds, mappings, overrides and transformations are those of @grafana/data. Its state timeline and
// status history are not among the components: those two are drawn here, with the colors that Grafana's rules give.
//
// require, not import: their modules for `import` do not find the defaults of what they are built on.
const {
  EventBusSrv, applyFieldOverrides, createTheme, dateTime, getDisplayProcessor, getFieldDisplayValues, standardFieldConfigEditorRegistry,
  standardTransformers, standardTransformersRegistry, toDataFrame, transformDataFrame,
} = require('@grafana/data');
const { BarGauge, BigValue, GlobalStyles, PanelChrome, PanelContextRoot, Table, ThemeContext, TimeSeries } = require('@grafana/ui');
const { createRoot } = require('react-dom/client');

const { board, frames, from, to } = window.board;
const theme = createTheme({ colors: { mode: 'dark' } });
const CELL = 1400 / 24;
const ROW = 38;
const LINES = {
  drawStyle: 'line', lineInterpolation: 'linear', axisPlacement: 'auto', axisColorMode: 'text', scaleDistribution: { type: 'linear' },
  hideFrom: { viz: false, legend: false, tooltip: false }, thresholdsStyle: { mode: 'off' }, pointSize: 4, gradientMode: 'none',
};
const range = { from: dateTime(from), to: dateTime(to), raw: { from: dateTime(from), to: dateTime(to) } };

const CONFIG = ['unit', 'min', 'max', 'noValue', 'thresholds', 'mappings', 'links', 'color'];
const CUSTOM = ['cellOptions', 'align', 'inspect', 'width', 'fillOpacity', 'lineWidth', 'showPoints', 'spanNulls', 'stacking', ...Object.keys(LINES)];
function registry() {
  const item = (id, path, isCustom) => ({
    id: isCustom ? `custom.${id}` : id, path, isCustom, name: id, process: (value) => value, shouldApply: () => true, getItemsCount: () => 0,
    editor: () => null, override: () => null, settings: {},
  });
  return [...CONFIG.map((id) => item(id, id, false)), ...CUSTOM.map((id) => item(id, id, true))];
}
standardFieldConfigEditorRegistry.setInit(registry);
standardTransformersRegistry.setInit(() => [standardTransformers.organizeFieldsTransformer].map((transformation) => ({
  id: transformation.id, name: transformation.name, transformation: async () => transformation, editor: () => null, imageDark: '', imageLight: '',
})));

function legendOf(template, labels) {
  return template.replace(/\{\{\s*(\w+)\s*\}\}/g, (_, name) => labels[name] ?? '');
}

// As Grafana's data source makes them: a frame for each series, or one table.
function framesOf(panel) {
  const answers = frames[panel.id] ?? [];
  if (panel.type === 'table') {
    return answers.filter((series) => series.length > 0).map((series) => toDataFrame({ fields: [
      { name: 'Time', type: 'time', values: series.map(() => to) },
      ...[...new Set(series.flatMap((each) => Object.keys(each.labels)))].sort().map((name) => ({
        name, type: 'string', values: series.map((each) => each.labels[name] ?? '') })),
      { name: 'Value', type: 'number', values: series.map((each) => each.points.at(-1)[1]) },
    ] }));
  }
  return answers.flatMap((series, number) => series.map((each) => {
    const legend = legendOf(panel.targets[number].legendFormat, each.labels);
    return toDataFrame({ refId: panel.targets[number].refId, fields: [
      { name: 'Time', type: 'time', values: each.points.map(([time]) => time), config: { interval: window.board.step } },
      { name: 'Value', type: 'number', labels: each.labels, values: each.points.map(([, value]) => value),
        config: legend ? { displayNameFromDS: legend } : {} },
    ] });
  }));
}

async function prepared(panel) {
  let data = framesOf(panel);
  if (panel.transformations) {
    data = await new Promise((done) => transformDataFrame(panel.transformations, data).subscribe(done));
  }
  const { defaults, overrides } = panel.fieldConfig;
  const custom = panel.type === 'timeseries' ? { ...LINES, ...defaults.custom } : { ...defaults.custom };
  const byDefault = { color: { mode: panel.type === 'timeseries' ? 'palette-classic' : 'thresholds' } };
  return applyFieldOverrides({
    data, theme, timeZone: 'utc', replaceVariables: (text) => text, fieldConfigRegistry: standardFieldConfigEditorRegistry,
    fieldConfig: { defaults: { ...byDefault, ...defaults, custom }, overrides },
  });
}

function Strip({ data, width, height }) {
  const rows = data.slice(0, 32);
  const names = 230;
  const rowHeight = Math.min(26, (height - 22) / rows.length);
  const x = (time) => names + ((time - from) / (to - from)) * (width - names - 8);
  return (
    <svg width={width} height={height}>
      {rows.map((frame, number) => {
        const field = frame.fields[1];
        const display = field.display ?? getDisplayProcessor({ field, theme });
        const times = frame.fields[0].values;
        return (
          <g key={number}>
            <text x={4} y={(number + 0.65) * rowHeight} fill={theme.colors.text.primary} fontSize={11}>{field.config.displayNameFromDS ?? 'Value'}</text>
            {field.values.map((value, at) => (
              <rect key={at} x={x(times[at])} width={Math.max(1, x(times[at] + window.board.step) - x(times[at]) + 0.5)} y={number * rowHeight + 1}
                height={rowHeight - 3} fill={display(value).color} />))}
          </g>);
      })}
      <text x={names} y={height - 4} fill={theme.colors.text.secondary} fontSize={11}>{new Date(from).toISOString().slice(11, 19)}</text>
      <text x={width - 60} y={height - 4} fill={theme.colors.text.secondary} fontSize={11}>{new Date(to).toISOString().slice(11, 19)}</text>
    </svg>);
}

function Values({ panel, data, width, height }) {
  const values = getFieldDisplayValues({
    data, fieldConfig: panel.fieldConfig, reduceOptions: panel.options.reduceOptions, replaceVariables: (text) => text, theme, timeZone: 'utc' });
  const shown = values.slice(0, 12);
  if (panel.type === 'stat') {
    return <div style={{ display: 'flex' }}>{shown.map((value, number) => (
      <BigValue key={number} value={value.display} width={width / shown.length} height={height} theme={theme} colorMode="value" graphMode="none"
        justifyMode="auto" textMode={shown.length > 1 ? 'value_and_name' : 'auto'} />))}</div>;
  }
  return shown.map((value, number) => (
    <BarGauge key={number} value={value.display} field={value.field} display={value.view?.getFieldDisplayProcessor(value.colIndex)} width={width}
      height={height / shown.length} theme={theme} orientation="horizontal" displayMode="basic" showUnfilled namePlacement="left"
      valueDisplayMode="color" />));
}

function Content({ panel, data, width, height }) {
  if (panel.type === 'text') {
    const cells = panel.options.content.split('\n').filter((line) => !line.includes('---'))
      .map((line) => line.replace(/\[([^\]]+)\]\([^)]*\)/g, '$1').split('|').slice(1, -1));
    return <table><tbody>{cells.map((row, number) => <tr key={number}>{row.map((cell, at) => <td key={at} style={{ padding: 5 }}>{cell}</td>)}</tr>)}</tbody></table>;
  }
  if (data.length === 0 || data.every((frame) => frame.length === 0)) {
    return <div className="empty" style={{ color: theme.colors.text.secondary, padding: 12 }}>{panel.fieldConfig.defaults.noValue}</div>;
  }
  switch (panel.type) {
    case 'timeseries':
      return <TimeSeries frames={data} width={width} height={height} timeRange={range} timeZone="utc" legend={panel.options.legend} />;
    case 'table':
      return <Table data={data[0]} width={width} height={height} initialSortBy={panel.options.sortBy} cellHeight="sm" />;
    case 'state-timeline':
    case 'status-history':
      return <Strip data={data} width={width} height={height} />;
    default:
      return <Values panel={panel} data={data} width={width} height={height} />;
  }
}

async function draw() {
  const shown = await Promise.all(board.panels.map(async (panel) => ({
    panel, data: panel.type === 'row' || panel.type === 'text' ? [] : await prepared(panel) })));
  const context = { eventsScope: '', eventBus: new EventBusSrv(), onSeriesColorChange() {}, canAddAnnotations: () => false };
  const bottom = Math.max(...board.panels.map(({ gridPos }) => gridPos.y + gridPos.h));
  createRoot(document.getElementById('root')).render(
    <ThemeContext.Provider value={theme}>
      <GlobalStyles />
      <PanelContextRoot.Provider value={context}>
        <h3 style={{ padding: 8, height: 34 }}>{board.title}: {board.description}</h3>
        <div style={{ position: 'relative', height: bottom * ROW }} id="drawn">
          {shown.map(({ panel, data }) => {
            const { x, y, w, h } = panel.gridPos;
            const place = { position: 'absolute', left: x * CELL + 4, top: y * ROW + 4 };
            if (panel.type === 'row') return <h4 key={panel.id} style={{ ...place, paddingTop: 8 }}>{panel.title}</h4>;
            return (
              <div key={panel.id} style={place} data-panel={panel.title}>
                <PanelChrome title={panel.title} description={panel.description} width={w * CELL - 8} height={h * ROW - 8}>
                  {(width, height) => <Content panel={panel} data={data} width={width} height={height} />}
                </PanelChrome>
              </div>);
          })}
        </div>
      </PanelContextRoot.Provider>
    </ThemeContext.Provider>);
}

draw().catch((error) => { document.body.innerHTML = `<pre id="failed">${error.stack}</pre>`; });
