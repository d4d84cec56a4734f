import { Button, Group, NumberInput, Progress, SimpleGrid, Stack } from "@mantine/core";
import { useState } from "react";
import { cappedPriceOf, NO_QUANTITIES } from "../../admission/price.ts";
import type { Rates } from "../../catalog/model.ts";
import { SPEED_REQUESTS_MIN } from "../../console/views.ts";
import { MAX_NANO_USD, type NanoUsd, type PicoUsdPerUnit } from "../../money/nano-usd.ts";
import type { ModelView } from "../api.ts";
import { Link } from "../router.tsx";
import {
	formatCompact,
	formatCount,
	formatDay,
	formatDuration,
	NUMBER_SEPARATORS,
	showRatePerMillion,
	showRatePerUnit,
	showUsd,
	t,
} from "../texts.tsx";
import { Empty, State } from "./page.tsx";
import { type Column, DataTable, type TableRows } from "./table.tsx";
import { Amount } from "./text.tsx";

export const KIND_LABELS: Readonly<Record<string, string>> = {
	chat: t("Chat"),
	embedding: t("Embeddings"),
	transcription: t("Transcription"),
	image: t("Images"),
	rerank: t("Reranking"),
};

export const RATES: readonly { name: keyof Rates; label: string; show: (rate: PicoUsdPerUnit) => string }[] = [
	{ name: "input", label: t("Input, per million tokens"), show: showRatePerMillion },
	{ name: "cachedInput", label: t("Cached input, per million tokens"), show: showRatePerMillion },
	{ name: "output", label: t("Output, per million tokens"), show: showRatePerMillion },
	{ name: "request", label: t("Request"), show: showRatePerUnit },
	{ name: "image", label: t("Image"), show: showRatePerUnit },
	{ name: "audioSecond", label: t("Second of audio"), show: showRatePerUnit },
	{ name: "search", label: t("Search"), show: showRatePerUnit },
];

const COLUMNS: readonly Column<ModelView>[] = [
	{
		label: t("Model"),
		lead: true,
		render: (model) => (
			<div>
				<Link to={`/models/${model.id}`}>{model.name}</Link>
				<div className="small dim">
					<code>{model.id}</code>
				</div>
				{model.retiresOn && (
					<div className="small">{t("Retires on {date}", { date: formatDay(Date.parse(model.retiresOn)) })}</div>
				)}
			</div>
		),
	},
	// The class `num` prevents a line break next to a long id.
	{ label: t("Kind"), render: (model) => <span className="num">{KIND_LABELS[model.kind] ?? model.kind}</span> },
	{ label: t("State"), corner: true, render: (model) => <ModelState model={model} /> },
	{ label: t("Context"), figure: ({ contextLength }) => contextLength > 0 && formatCompact(contextLength) },
	{ label: t("Speed"), figure: ({ speed }) => speed && <ModelSpeed speed={speed} /> },
	{ label: t("Input, per million"), figure: ({ rates }) => rates.input > 0 && showRatePerMillion(rates.input) },
	{ label: t("Output, per million"), figure: ({ rates }) => rates.output > 0 && showRatePerMillion(rates.output) },
	{ label: t("Other"), figure: otherRates },
];

export function ModelState({ model }: { model: Pick<ModelView, "status"> }) {
	return <State value={model.status} label={model.status === "connected" ? t("Connected") : t("Unavailable")} />;
}

function otherRates({ rates }: ModelView): string {
	const others = [
		{ rate: rates.request, what: t("per request") },
		{ rate: rates.image, what: t("per image") },
		{ rate: rates.audioSecond, what: t("per second") },
		{ rate: rates.search, what: t("per search") },
	].filter(({ rate }) => rate > 0);
	return others.map(({ rate, what }) => `${showRatePerUnit(rate)} ${what}`).join(", ");
}

export function ModelTable({ searched = false, ...table }: TableRows<ModelView> & { searched?: boolean }) {
	return (
		<>
			<DataTable
				label={t("Models")}
				columns={COLUMNS}
				{...table}
				empty={
					searched ? (
						<Empty title={t("No model matches.")} />
					) : (
						<Empty title={t("No model is deployed.")}>
							{t("The operator of the service adds model servers to the catalogue.")}
						</Empty>
					)
				}
			/>
			<SpeedNote models={table.rows} />
		</>
	);
}

function ModelSpeed({ speed }: { speed: NonNullable<ModelView["speed"]> }) {
	const { firstTokenMs, tokensPerSecond } = speed;
	const first = t("{time} to first token", { time: formatDuration(firstTokenMs) });
	if (tokensPerSecond === null) return first;
	return (
		<>
			{t("{count} tokens/s", { count: formatCount(tokensPerSecond) })}
			<div className="small dim">{first}</div>
		</>
	);
}

/** Explains how speeds were measured; empty if no model has enough requests. */
function SpeedNote({ models }: { models: readonly ModelView[] | undefined }) {
	if (!models?.some(({ speed }) => speed !== null)) return null;
	return (
		<p className="small dim panel-note">
			{t(
				"Speed is the median of all customers' streamed responses in the last day: time to first token, and tokens per second after it. It is not shown for models with fewer than {least} responses.",
				{ least: formatCount(SPEED_REQUESTS_MIN) },
			)}
		</p>
	);
}

/** A typical request. The tokens of `cached` are included in `input`. */
interface Workload {
	readonly input: number;
	readonly cached: number;
	readonly output: number;
	readonly requests: number;
}

const WORKLOADS: readonly (Workload & { readonly label: string })[] = [
	{ label: t("Chat"), input: 800, cached: 0, output: 300, requests: 100_000 },
	{ label: t("Question about documents (RAG)"), input: 6_000, cached: 0, output: 400, requests: 50_000 },
	{ label: t("Agent step"), input: 30_000, cached: 24_000, output: 500, requests: 20_000 },
];
const TOKENS_MAX = 10_000_000;
const SHOWN_MAX = 12;
const REQUESTS_MAX = 1_000_000_000;

const FIELDS: readonly { readonly name: keyof Workload; readonly label: string; readonly max: number }[] = [
	{ name: "input", label: t("Input tokens"), max: TOKENS_MAX },
	{ name: "cached", label: t("Of which cached"), max: TOKENS_MAX },
	{ name: "output", label: t("Output tokens"), max: TOKENS_MAX },
	{ name: "requests", label: t("Requests per month"), max: REQUESTS_MAX },
];

export function PriceCalculator({ models }: { models: readonly ModelView[] }) {
	const [work, setWork] = useState<Workload>(WORKLOADS[0] as Workload);
	const priced = models
		.filter((model) => model.modes.includes("chat"))
		.map((model) => ({ model, each: requestCost(model, work) }))
		.sort((one, other) => one.each - other.each);
	const dearest = Math.max(1, ...priced.slice(0, SHOWN_MAX).map(({ each }) => each));
	if (priced.length === 0) return <Empty title={t("No chat model is deployed.")} />;
	return (
		<SimpleGrid cols={{ base: 1, md: 2 }} spacing="xl">
			<Stack gap="sm">
				<Group gap="xs">
					{WORKLOADS.map(({ label, ...preset }) => (
						<Button
							key={label}
							size="xs"
							variant={FIELDS.every(({ name }) => preset[name] === work[name]) ? "filled" : "default"}
							aria-pressed={FIELDS.every(({ name }) => preset[name] === work[name])}
							onClick={() => setWork(preset)}
						>
							{label}
						</Button>
					))}
				</Group>
				<SimpleGrid cols={2} spacing="sm" className="field-row">
					{FIELDS.map(({ name, label, max }) => (
						<NumberInput
							key={name}
							label={label}
							min={0}
							max={max}
							clampBehavior="strict"
							allowDecimal={false}
							allowNegative={false}
							{...NUMBER_SEPARATORS}
							value={work[name]}
							onValueChange={({ floatValue }) => setWork({ ...work, [name]: floatValue ?? 0 })}
						/>
					))}
				</SimpleGrid>
			</Stack>
			<Stack component="ol" className="bare" gap="sm" aria-label={t("Cost by model, the cheapest first")}>
				{priced.slice(0, SHOWN_MAX).map(({ model, each }) => (
					<li key={model.id}>
						<Group justify="space-between" gap="xs">
							<Link to={`/models/${model.id}`}>{model.name}</Link>
							<span>
								{model.speed !== null && model.speed.tokensPerSecond !== null && (
									<span className="dim num">
										{t("{count} tokens/s", { count: formatCount(model.speed.tokensPerSecond) })}
										{" · "}
									</span>
								)}
								<Amount nanoUsd={each} /> <span className="dim">{t("per request")}</span>
								{" · "}
								<strong className="num">{monthly(each, work.requests)}</strong>{" "}
								<span className="dim">{t("per month")}</span>
							</span>
						</Group>
						<Progress value={Math.max(1, (100 * each) / dearest)} mt={4} aria-hidden="true" />
					</li>
				))}
				{priced.length > SHOWN_MAX && (
					<li className="small dim">
						{t("{count} more expensive models are not shown.", { count: priced.length - SHOWN_MAX })}
					</li>
				)}
			</Stack>
		</SimpleGrid>
	);
}

/** Cost of a request, rounded up once, as charges are. */
export function requestCost({ rates }: Pick<ModelView, "rates">, work: Workload): NanoUsd {
	const cached = Math.min(work.cached, work.input);
	return cappedPriceOf(rates, {
		...NO_QUANTITIES,
		promptTokens: work.input,
		cachedTokens: cached,
		completionTokens: work.output,
		requests: 1,
	});
}

function monthly(each: NanoUsd, requests: number): string {
	const sum = BigInt(each) * BigInt(requests);
	if (sum > BigInt(MAX_NANO_USD)) return t("more than {amount}", { amount: showUsd(MAX_NANO_USD) });
	return showUsd(Number(sum) as NanoUsd);
}
