import { Select } from "@mantine/core";
import { useMemo, useState } from "react";
import { displayDifference, displaySum, type NanoUsd, ZERO_USD } from "../../money/nano-usd.ts";
import { DownloadButton } from "../parts/form.tsx";
import { Empty, LoadState, Panel } from "../parts/page.tsx";
import { TablePanel } from "../parts/table.tsx";
import type { TimeSeries } from "../parts/time-series.ts";
import { COUNT_FORMAT, MONEY_FORMAT, TimeChart } from "../parts/usage-chart.tsx";
import { useResource } from "../resource.ts";
import { formatCount, formatDuration, formatDurationTick, formatPercent, formatTick, t } from "../texts.tsx";
import { operatorApi, type ServiceFigures, type ServiceFilter } from "./api.ts";

type Point = TimeSeries["points"][number];

export function ServicePanels({ filter }: { filter: ServiceFilter }) {
	const service = useResource(`service ${JSON.stringify(filter)}`, () => operatorApi.service(filter));
	const { data } = service;
	const rows = useMemo(() => (data ? marginsOf(data) : []), [data]);
	return (
		<>
			<LoadState of={service} />
			{data && (
				<>
					<MarginPanel data={data} rows={rows} csv={operatorApi.marginCsvAddress(filter)} />
					<SpeedPanel data={data} models={rows.map(({ model }) => model)} />
					<LoadPanel data={data} />
				</>
			)}
		</>
	);
}

const seriesOf = (data: ServiceFigures, ids: readonly string[], points: readonly Point[]): TimeSeries => {
	return { ...data, groups: ids.map((id) => ({ id, label: id })), points };
};

type Margin = ReturnType<typeof marginsOf>[number];

function marginsOf({ earned }: ServiceFigures) {
	return [...Map.groupBy(earned, ({ model }) => model)]
		.map(([model, own]) => {
			const sum = (name: "chargedNanoUsd" | "costNanoUsd") =>
				own.reduce((all, row) => displaySum(all, row[name]), ZERO_USD);
			const replicaHours = own.reduce((all, row) => all + row.replicaHours, 0);
			return { model, chargedNanoUsd: sum("chargedNanoUsd"), costNanoUsd: sum("costNanoUsd"), replicaHours };
		})
		.toSorted((a, b) => b.chargedNanoUsd - a.chargedNanoUsd);
}

function MarginPanel({ data, rows, csv }: { data: ServiceFigures; rows: readonly Margin[]; csv: string }) {
	if (rows.every(({ costNanoUsd }) => costNanoUsd === 0))
		return (
			<Panel title={t("Margin")}>
				<Empty title={t("No cost data.")}>
					{t("Set the cost of each model in tollgate.yaml, per replica and hour or per million tokens.")}
				</Empty>
			</Panel>
		);
	const points = data.earned.map(({ atMs, model, chargedNanoUsd, costNanoUsd }) => {
		return { atMs, group: model, value: displayDifference(chargedNanoUsd, costNanoUsd) };
	});
	return (
		<>
			<Panel title={t("Margin")} aside={<DownloadButton href={csv} />}>
				<TimeChart
					series={seriesOf(
						data,
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
				columns={[
					{ label: t("Model"), lead: true, render: (row) => row.model },
					{ label: t("Revenue"), amount: (row) => row.chargedNanoUsd },
					{ label: t("Cost"), amount: (row) => row.costNanoUsd },
					{
						label: t("Share of revenue"),
						figure: (row) =>
							row.chargedNanoUsd > 0 && formatPercent((row.chargedNanoUsd - row.costNanoUsd) / row.chargedNanoUsd),
					},
					{ label: t("Replica hours"), figure: (row) => formatCount(row.replicaHours) },
					{
						label: t("Revenue per replica hour"),
						amount: (row) =>
							row.replicaHours > 0 ? (Math.round(row.chargedNanoUsd / row.replicaHours) as NanoUsd) : null,
					},
					{ label: t("Margin"), amount: (row) => displayDifference(row.chargedNanoUsd, row.costNanoUsd), corner: true },
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

function SpeedPanel({ data, models: all }: { data: ServiceFigures; models: readonly string[] }) {
	const [chosen, choose] = useState<string>(SPEEDS[0].value);
	const { kind, of, label } = SPEEDS.find(({ value }) => value === chosen) ?? SPEEDS[0];
	const models = all.filter((model) => data.speedsInAll.some((speed) => speed.model === model));
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
					<Select
						size="xs"
						aria-label={t("Metric")}
						data={SPEEDS.map(({ value, label }) => ({ value, label }))}
						allowDeselect={false}
						value={chosen}
						onChange={(value) => choose(value ?? chosen)}
					/>
				}
			>
				<TimeChart
					kind="line"
					series={seriesOf(data, models, points)}
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

function LoadPanel({ data }: { data: ServiceFigures }) {
	const names = [...new Set(data.replicas.map(({ replica }) => replica))];
	const points = data.replicas.map(({ atMs, replica, used }) => ({ atMs, group: replica, value: used }));
	return (
		<Panel title={t("Average concurrent requests by replica")}>
			{names.length === 0 ? (
				<Empty title={t("No samples yet.")}>{t("The service takes a sample every minute.")}</Empty>
			) : (
				<TimeChart
					kind="line"
					series={seriesOf(data, names, points)}
					label={t("Average concurrent requests over time by replica")}
					formatTick={formatTick}
					formatValue={(used) => formatTick(used, 0.01)}
				/>
			)}
		</Panel>
	);
}
