import { formatCompact, formatRate } from "../format.ts";
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
	{ label: "Input, per million", right: true, render: (model) => <Rate usd={model.rates.inputUsdPerMillion} /> },
	{ label: "Output, per million", right: true, render: (model) => <Rate usd={model.rates.outputUsdPerMillion} /> },
	{ label: "Other", right: true, render: (model) => <span className="num">{otherRates(model)}</span> },
];

export function ModelState({ model }: { model: ModelView }) {
	return <State value={model.status} label={model.status === "connected" ? "Connected" : "Unavailable"} />;
}

function Rate({ usd }: { usd: string }) {
	return <span className="num">{Number(usd) === 0 ? "–" : formatRate(usd)}</span>;
}

/** Rates that are not for text tokens. */
export function otherRates({ rates }: ModelView): string {
	const parts = [
		[rates.requestUsd, "a request"],
		[rates.imageUsd, "an image"],
		[rates.audioSecondUsd, "a second"],
		[rates.searchUsd, "a search"],
	].filter(([usd]) => Number(usd) > 0);
	return parts.length === 0 ? "–" : parts.map(([usd, unit]) => `${formatRate(usd ?? "0")} ${unit}`).join(", ");
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
