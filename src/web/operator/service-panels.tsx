import { SegmentedControl } from "@mantine/core";
import { useState } from "react";
import { displayRest, displaySum, type NanoUsd, ZERO_USD } from "../../money/nano-usd.ts";
import { formatCount, formatDuration, formatDurationTick, formatPercent, formatTick } from "../format.ts";
import { Panel } from "../parts/page.tsx";
import { Empty, Reading } from "../parts/problem.tsx";
import { TablePanel } from "../parts/table.tsx";
import { COUNT_FORMAT, MONEY_FORMAT, TimeChart, type TimeSeries } from "../parts/usage-chart.tsx";
import { useResource } from "../resource.ts";
import { t } from "../texts.tsx";
import type { UsageSeries } from "../views.ts";
import { operatorApi, type ServiceFigures, type ServiceFilter } from "./api.ts";

type Range = Pick<UsageSeries, "bucket" | "starts" | "toMs"> | undefined;
type Point = TimeSeries["points"][number];

/** Margins, speeds and loads over the buckets of `series`. */
export function ServicePanels({ filter, series }: { filter: ServiceFilter; series: Range }) {
	const service = useResource(`service ${JSON.stringify(filter)}`, () => operatorApi.service(filter));
	const { data } = service;
	return (
		<>
			<Reading of={service} />
			{data && <MarginPanel range={series} earned={data.earned} />}
			{data && <SpeedPanel range={series} data={data} />}
			{data && <LoadPanel range={series} replicas={data.replicas} />}
		</>
	);
}

const seriesOf = (range: Range, ids: readonly string[], points: readonly Point[]): TimeSeries | undefined =>
	range && { ...range, groups: ids.map((id) => ({ id, label: id })), points };

interface Margin {
	readonly model: string;
	readonly chargedNanoUsd: NanoUsd;
	readonly costNanoUsd: NanoUsd;
	readonly replicaHours: number;
}

function MarginPanel({ range, earned }: { range: Range; earned: ServiceFigures["earned"] }) {
	if (earned.every(({ costNanoUsd }) => costNanoUsd === 0))
		return (
			<Panel title={t("Margin")}>
				<Empty title={t("No costs are known.")}>
					{t("Set the cost of each model in tollgate.yaml, per replica and hour or per million tokens.")}
				</Empty>
			</Panel>
		);
	const rows = [...Map.groupBy(earned, ({ model }) => model)]
		.map(([model, own]): Margin => {
			const sum = (name: "chargedNanoUsd" | "costNanoUsd") =>
				own.reduce((all, row) => displaySum(all, row[name]), ZERO_USD);
			const replicaHours = own.reduce((all, row) => all + row.replicaHours, 0);
			return { model, chargedNanoUsd: sum("chargedNanoUsd"), costNanoUsd: sum("costNanoUsd"), replicaHours };
		})
		.toSorted((a, b) => b.chargedNanoUsd - a.chargedNanoUsd);
	const points = earned.map(({ atMs, model, marginNanoUsd }) => ({ atMs, group: model, value: marginNanoUsd }));
	return (
		<>
			<Panel title={t("Margin")}>
				<TimeChart
					series={seriesOf(
						range,
						rows.map(({ model }) => model),
						points,
					)}
					label={t("Margin over time by model; the table below has the figures")}
					{...MONEY_FORMAT}
				/>
			</Panel>
			<TablePanel
				title={t("Margin by model")}
				rows={rows}
				rowKey={(row) => row.model}
				empty={null}
				columns={[
					{ label: t("Model"), lead: true, render: (row) => row.model },
					{ label: t("Revenue"), amount: (row) => row.chargedNanoUsd },
					{ label: t("Cost"), amount: (row) => row.costNanoUsd },
					{
						label: t("Share"),
						figure: (row) =>
							row.chargedNanoUsd > 0 && formatPercent((row.chargedNanoUsd - row.costNanoUsd) / row.chargedNanoUsd),
					},
					{ label: t("Replica hours"), figure: (row) => formatCount(row.replicaHours) },
					{
						label: t("Earned per replica hour"),
						amount: (row) =>
							row.replicaHours > 0 ? (Math.round(row.chargedNanoUsd / row.replicaHours) as NanoUsd) : null,
					},
					{ label: t("Margin"), amount: (row) => displayRest(row.chargedNanoUsd, row.costNanoUsd), corner: true },
				]}
			/>
		</>
	);
}

const SPEEDS = [
	{ value: "first-median", kind: "first_token", of: "median", label: t("First token, median") },
	{ value: "first-high", kind: "first_token", of: "high", label: t("First token, 95 %") },
	{ value: "rate-median", kind: "rate", of: "median", label: t("Tokens/s, median") },
	{ value: "rate-high", kind: "rate", of: "high", label: t("Tokens/s, 95 %") },
] as const;
const TIME_FORMAT = { formatTick: formatDurationTick, formatValue: formatDuration };

function SpeedPanel({ range, data }: { range: Range; data: ServiceFigures }) {
	const [chosen, choose] = useState<string>(SPEEDS[0].value);
	const { kind, of, label } = SPEEDS.find(({ value }) => value === chosen) ?? SPEEDS[0];
	const models = [...new Set(data.speedsInAll.map(({ model }) => model))];
	const points = data.speeds.flatMap((speed) =>
		speed.kind === kind && speed.atMs !== null ? [{ atMs: speed.atMs, group: speed.model, value: speed[of] }] : [],
	);
	const inAll = (model: string, wanted: "first_token" | "rate") =>
		data.speedsInAll.find((speed) => speed.model === model && speed.kind === wanted);
	return (
		<>
			<Panel
				title={t("Speed")}
				aside={
					<SegmentedControl
						size="xs"
						aria-label={t("Metric")}
						data={SPEEDS.map(({ value, label }) => ({ value, label }))}
						value={chosen}
						onChange={choose}
					/>
				}
			>
				<TimeChart
					kind="line"
					series={seriesOf(range, models, points)}
					label={t("{measure} over time by model; the table below has the figures", { measure: label })}
					{...(kind === "rate" ? COUNT_FORMAT : TIME_FORMAT)}
				/>
			</Panel>
			<TablePanel
				title={t("Speed by model")}
				rows={models}
				rowKey={(model) => model}
				empty={<Empty title={t("No streamed responses in this time range.")} />}
				columns={[
					{ label: t("Model"), lead: true, render: (model) => model },
					{ label: t("Responses"), figure: (model) => formatCount(inAll(model, "first_token")?.requests ?? 0) },
					...SPEEDS.map((speed) => ({
						label: speed.label,
						figure: (model: string) => {
							const found = inAll(model, speed.kind)?.[speed.of];
							return found !== undefined && (speed.kind === "rate" ? formatCount(found) : formatDuration(found));
						},
					})),
				]}
			/>
		</>
	);
}

const LOAD_FORMAT = { formatTick, formatValue: (used: number) => used.toFixed(1) };

function LoadPanel({ range, replicas }: { range: Range; replicas: ServiceFigures["replicas"] }) {
	const names = [...new Set(replicas.map(({ replica }) => replica))];
	const points = replicas.map(({ atMs, replica, used }) => ({ atMs, group: replica, value: used }));
	return (
		<Panel title={t("Places in use, average by replica")}>
			{names.length === 0 ? (
				<Empty title={t("No samples yet.")}>{t("The service takes one each minute.")}</Empty>
			) : (
				<TimeChart
					kind="line"
					series={seriesOf(range, names, points)}
					label={t("Places in use over time by replica")}
					{...LOAD_FORMAT}
				/>
			)}
		</Panel>
	);
}
