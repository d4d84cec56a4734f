import type { PicoUsdPerUnit } from "../../../money/nano-usd.ts";
import { showRatePerMillion, showRatePerUnit } from "../../../money/shown-usd.ts";
import { formatCompact, formatCount, formatDuration } from "../format.ts";
import type { ApiError } from "../http.ts";
import { Link } from "../router.tsx";
import type { ModelView } from "../views.ts";
import { State } from "./page.tsx";
import { Empty } from "./problem.tsx";
import type { Column } from "./table.tsx";
import { DataTable } from "./table.tsx";

export const KINDS: Readonly<Record<string, string>> = {
	chat: "Chat",
	embedding: "Embeddings",
	transcription: "Transcription",
	image: "Images",
	rerank: "Reranking",
};

const COLUMNS: readonly Column<ModelView>[] = [
	{
		label: "Model",
		lead: true,
		render: (model) => (
			<div>
				<Link to={`/models/${model.id}`}>{model.name}</Link>
				<div className="small dim">
					<code>{model.id}</code>
				</div>
				{model.retiresOn && <div className="small">Until {model.retiresOn}</div>}
			</div>
		),
	},
	{ label: "Kind", render: (model) => KINDS[model.kind] ?? model.kind },
	{ label: "State", corner: true, render: (model) => <ModelState model={model} /> },
	{
		label: "Context",
		right: true,
		render: (model) => (
			<span className="num">{model.contextLength > 0 ? formatCompact(model.contextLength) : "–"}</span>
		),
	},
	{ label: "Speed", right: true, render: (model) => <span className="num">{shownSpeed(model)}</span> },
	{ label: "Input, per million", right: true, render: (model) => <TokenRate rate={model.rates.input} /> },
	{ label: "Output, per million", right: true, render: (model) => <TokenRate rate={model.rates.output} /> },
	{ label: "Other", right: true, render: (model) => <span className="num">{otherRates(model)}</span> },
];

export function ModelState({ model }: { model: ModelView }) {
	return <State value={model.status} label={model.status === "connected" ? "Connected" : "Unavailable"} />;
}

/** Median of the last day, as the service measured it. */
function shownSpeed({ speed }: ModelView): string {
	if (speed === null) return "–";
	return speed.tokensPerSecond === null
		? formatDuration(speed.firstTokenMs)
		: `${formatCount(speed.tokensPerSecond)} tokens/s`;
}

function TokenRate({ rate }: { rate: PicoUsdPerUnit }) {
	return <span className="num">{rate === 0 ? "–" : showRatePerMillion(rate)}</span>;
}

/** Rates that are not for text tokens. */
function otherRates({ rates }: ModelView): string {
	const others = [
		{ rate: rates.request, what: "a request" },
		{ rate: rates.image, what: "an image" },
		{ rate: rates.audioSecond, what: "a second" },
		{ rate: rates.search, what: "a search" },
	].filter(({ rate }) => rate > 0);
	return others.map(({ rate, what }) => `${showRatePerUnit(rate)} ${what}`).join(", ") || "–";
}

export function ModelTable(props: {
	rows: readonly ModelView[] | undefined;
	error?: ApiError | undefined;
	retry: () => void;
	searched?: boolean;
}) {
	return (
		<DataTable
			label="Models"
			columns={COLUMNS}
			rows={props.rows}
			rowKey={(model) => model.id}
			error={props.error}
			retry={props.retry}
			empty={
				props.searched ? (
					<Empty title="No model matches." />
				) : (
					<Empty title="No model is deployed.">
						The operator of the service connects model servers in its catalogue.
					</Empty>
				)
			}
		/>
	);
}
