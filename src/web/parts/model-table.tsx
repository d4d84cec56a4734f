import { SPEED_REQUESTS_MIN } from "../../console/views.ts";
import { formatCompact, formatCount, formatDay, formatDuration } from "../format.ts";
import type { ApiError } from "../http.ts";
import { Link } from "../router.tsx";
import { showRatePerMillion, showRatePerUnit } from "../shown-money.ts";
import { t } from "../texts.tsx";
import type { ModelView } from "../views.ts";
import { State } from "./page.tsx";
import { Empty } from "./problem.tsx";
import { type Column, DataTable } from "./table.tsx";

export const KINDS: Readonly<Record<string, string>> = {
	chat: t("Chat"),
	embedding: t("Embeddings"),
	transcription: t("Transcription"),
	image: t("Images"),
	rerank: t("Reranking"),
};

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
	{ label: t("Kind"), render: (model) => <span className="num">{KINDS[model.kind] ?? model.kind}</span> },
	{ label: t("State"), corner: true, render: (model) => <ModelState model={model} /> },
	{ label: t("Context"), figure: ({ contextLength }) => contextLength > 0 && formatCompact(contextLength) },
	{ label: t("Speed"), figure: ({ speed }) => speed && <ModelSpeed speed={speed} /> },
	{ label: t("Input, per million"), figure: ({ rates }) => rates.input > 0 && showRatePerMillion(rates.input) },
	{ label: t("Output, per million"), figure: ({ rates }) => rates.output > 0 && showRatePerMillion(rates.output) },
	{ label: t("Other"), figure: otherRates },
];

export function ModelState({ model }: { model: ModelView }) {
	return <State value={model.status} label={model.status === "connected" ? t("Connected") : t("Unavailable")} />;
}

/** Returns the rates for anything but text tokens. */
function otherRates({ rates }: ModelView): string {
	const others = [
		{ rate: rates.request, what: t("per request") },
		{ rate: rates.image, what: t("per image") },
		{ rate: rates.audioSecond, what: t("per second") },
		{ rate: rates.search, what: t("per search") },
	].filter(({ rate }) => rate > 0);
	return others.map(({ rate, what }) => `${showRatePerUnit(rate)} ${what}`).join(", ");
}

export function ModelTable(props: {
	rows: readonly ModelView[] | undefined;
	error?: ApiError | undefined;
	retry: () => void;
	searched?: boolean;
}) {
	return (
		<>
			<DataTable
				label={t("Models")}
				columns={COLUMNS}
				rows={props.rows}
				error={props.error}
				retry={props.retry}
				empty={
					props.searched ? (
						<Empty title={t("No model matches.")} />
					) : (
						<Empty title={t("No model is deployed.")}>
							{t("The operator of the service adds model servers to the catalogue.")}
						</Empty>
					)
				}
			/>
			<SpeedNote models={props.rows} />
		</>
	);
}

/** Shows the model's median speeds of the last day, as measured by the service. */
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
