import { Button, Skeleton } from "@mantine/core";
import type { Rates } from "../../../catalog/model.ts";
import type { PicoUsdPerUnit } from "../../../money/nano-usd.ts";
import { api } from "../api.ts";
import { formatCount, formatDuration } from "../format.ts";
import { CodeTabs } from "../parts/code.tsx";
import { KINDS, ModelState } from "../parts/model-table.tsx";
import { Facts, Page, Panel } from "../parts/page.tsx";
import { Empty, Notice, Problem } from "../parts/problem.tsx";
import { DataTable } from "../parts/table.tsx";
import { Id, Moment } from "../parts/text.tsx";
import { useResource } from "../resource.ts";
import { Link } from "../router.tsx";
import { useSession } from "../session.tsx";
import { showRatePerMillion, showRatePerUnit } from "../shown-money.ts";
import { chatSnippets } from "../snippets.ts";
import type { ModelDetail } from "../views.ts";

const RATES: readonly { name: keyof Rates; label: string; show: (rate: PicoUsdPerUnit) => string }[] = [
	{ name: "input", label: "Input, per million tokens", show: showRatePerMillion },
	{ name: "cachedInput", label: "Cached input, per million tokens", show: showRatePerMillion },
	{ name: "output", label: "Output, per million tokens", show: showRatePerMillion },
	{ name: "request", label: "Request", show: showRatePerUnit },
	{ name: "image", label: "Image", show: showRatePerUnit },
	{ name: "audioSecond", label: "Second of audio", show: showRatePerUnit },
	{ name: "search", label: "Search", show: showRatePerUnit },
];

export default function ModelPage({ id }: { id: string }) {
	const model = useResource(`model ${id}`, () => api.model(id));
	const { me } = useSession();
	const item = model.data;
	if (model.error?.status === 404) {
		return (
			<Page title="Model">
				<Empty title="There is no such model." action={<Link to="/models">All models</Link>} />
			</Page>
		);
	}
	return (
		<Page
			title={item?.name ?? id}
			lead={<Id value={id} label="Copy the model's id" />}
			aside={
				me?.account &&
				item?.modes.includes("chat") && (
					<Button component={Link} to={`/playground?model=${encodeURIComponent(id)}`} size="xs">
						Try it
					</Button>
				)
			}
		>
			{model.error && <Problem error={model.error} retry={() => void model.reload()} />}
			{!item && !model.error && <Skeleton height={320} />}
			{item && <Detail item={item} />}
		</Page>
	);
}

function Detail({ item }: { item: ModelDetail }) {
	const { config } = useSession();
	const used = RATES.filter(({ name }) => [item, ...item.history].some(({ rates }) => rates[name] > 0));
	return (
		<>
			{item.status === "unavailable" && (
				<Notice kind="warn">
					No server for this model is connected right now: requests are refused with 503. The{" "}
					<a href="/status">status page</a> says the same.
				</Notice>
			)}
			{item.retiresOn && (
				<Notice kind="warn">
					This model goes away: from {item.retiresOn} (UTC) on, requests that name it are refused with 404.{" "}
					<Link to="/models">All models</Link>
				</Notice>
			)}
			<div className="grid-even">
				<Panel title="Model">
					<Facts
						items={[
							["State", <ModelState key="state" model={item} />],
							["Replicas", `${formatCount(item.replicas.up)} of ${formatCount(item.replicas.total)} up`],
							["Kind", KINDS[item.kind] ?? item.kind],
							["Modes", item.modes.join(", ") || "–"],
							["Context", item.contextLength > 0 ? `${formatCount(item.contextLength)} tokens` : "–"],
							["Output at most", item.maxOutputTokens > 0 ? `${formatCount(item.maxOutputTokens)} tokens` : "–"],
							["Takes", item.inputModalities.join(", ")],
							["Gives", item.outputModalities.join(", ")],
							["Optional fields", item.parameters.length === 0 ? "None" : item.parameters.join(", ")],
						]}
					/>
				</Panel>
				<SpeedPanel speed={item.speed} />
				<Panel title="Rates in USD">
					<Facts
						items={used.map(
							({ name, label, show }) =>
								[
									label,
									<span key={name} className="num">
										{show(item.rates[name])}
									</span>,
								] as const,
						)}
					/>
				</Panel>
			</div>
			{item.modes.includes("chat") && (
				<Panel title="Use it">
					<CodeTabs
						snippets={chatSnippets({
							baseUrl: config.baseUrl,
							model: item.id,
							messages: [{ role: "user", content: "Hello!" }],
						})}
					/>
				</Panel>
			)}
			<Panel title="Rate history" flush>
				<DataTable
					label="Rate history"
					rows={item.history}
					rowKey={(entry) => entry.id}
					empty={<Empty title="No history yet." />}
					columns={[
						{ label: "Version", lead: true, render: (entry) => `Version ${entry.version}` },
						{ label: "Since", render: (entry) => <Moment atMs={entry.storedAtMs} /> },
						...used.map(({ name, label, show }) => ({
							label,
							right: true,
							render: (entry: ModelDetail["history"][number]) => <span className="num">{show(entry.rates[name])}</span>,
						})),
					]}
				/>
			</Panel>
		</>
	);
}

/** How it was measured stands beside it. */
function SpeedPanel({ speed }: { speed: ModelDetail["speed"] }) {
	if (speed === null)
		return (
			<Panel title="Speed">
				<Empty title="Too few streamed answers in the last day to tell." />
			</Panel>
		);
	return (
		<Panel title="Speed">
			<Facts
				items={[
					["First token, median", <span key="first">{formatDuration(speed.firstTokenMs)}</span>],
					[
						"Tokens a second, median",
						speed.tokensPerSecond === null ? "Too few long answers" : formatCount(speed.tokensPerSecond),
					],
				]}
			/>
			<p className="small dim">
				{`Of ${formatCount(speed.requests)} streamed answers of the last day, of all customers, measured by this service: from a request's arrival to its first token, and behind that as the tokens came, for answers of 16 and more. Within 6 %.`}
			</p>
		</Panel>
	);
}
