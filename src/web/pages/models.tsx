import { SimpleGrid } from "@mantine/core";
import { api, type ModelDetail, type ModelView } from "../api.ts";
import { CodeTabs } from "../parts/code.tsx";
import { SearchField } from "../parts/fields.tsx";
import { FilterSelect } from "../parts/filters.tsx";
import { ActButton } from "../parts/form.tsx";
import { KIND_LABELS, ModelState, ModelTable, RATES } from "../parts/model-table.tsx";
import { DetailList, Empty, LoadState, Notice, Page, Panel } from "../parts/page.tsx";
import { TablePanel } from "../parts/table.tsx";
import { CopyableId, Timestamp } from "../parts/text.tsx";
import { useResource } from "../resource.ts";
import { linkRenderer, useQueryState } from "../router.tsx";
import { useModels, useSession } from "../session.tsx";
import { chatSnippets } from "../snippets/chat.ts";
import { formatCount, formatDay, formatDuration, rich, t } from "../texts.tsx";

const ABILITIES: readonly { readonly value: string; readonly label: string; has(model: ModelView): boolean }[] = [
	{ value: "images", label: t("Image input"), has: ({ inputModalities }) => inputModalities.includes("image") },
	{ value: "audio", label: t("Audio input"), has: ({ inputModalities }) => inputModalities.includes("audio") },
	{ value: "tools", label: t("Tool calling"), has: ({ parameters }) => parameters.includes("tools") },
	{ value: "schema", label: t("Structured output"), has: ({ parameters }) => parameters.includes("response_format") },
	{ value: "logprobs", label: t("Log probabilities"), has: ({ parameters }) => parameters.includes("logprobs") },
];

const CONTEXTS = ["8192", "32768", "131072", "1000000"].map((value) => ({
	value,
	label: t("{value} tokens or more", { value: value === "1000000" ? "1M" : `${Number(value) / 1024}K` }),
}));

const ORDERS: Readonly<Record<string, { readonly label: string; compare(one: ModelView, other: ModelView): number }>> =
	{
		input: { label: t("Input price"), compare: (one, other) => one.rates.input - other.rates.input },
		output: { label: t("Output price"), compare: (one, other) => one.rates.output - other.rates.output },
		context: { label: t("Longest context"), compare: (one, other) => other.contextLength - one.contextLength },
		speed: {
			label: t("Fastest"),
			compare: (one, other) => (other.speed?.tokensPerSecond ?? 0) - (one.speed?.tokensPerSecond ?? 0),
		},
		name: { label: t("Name"), compare: (one, other) => one.name.localeCompare(other.name) },
	};

/** The list of models, or one model if `id` is set. The URL contains the filters, so that views can be shared. */
export default function ModelPages({ id }: { id: string }) {
	return id === "" ? <ModelList /> : <ModelPage id={id} />;
}

function ModelList() {
	const models = useModels();
	const [query, change] = useQueryState();
	const rows = models.data && narrowed(models.data.items, query);
	const isNarrowed = ["search", "kind", "can", "context", "state"].some((name) => query.has(name));
	return (
		<Page title={t("Models")} lead={t("Rates and current availability of every model.")}>
			<SimpleGrid className="field-row" minColWidth="min(50% - 8px, 150px)" autoFlow="auto-fit" spacing="xs">
				<SearchField
					label={t("Search models")}
					value={query.get("search") ?? ""}
					onChange={(value) => change({ search: value })}
				/>
				<FilterSelect name="kind" label={t("Kind")} data={optionsOf(KIND_LABELS)} />
				<FilterSelect name="can" label={t("Feature")} data={ABILITIES} />
				<FilterSelect name="context" label={t("Context")} data={CONTEXTS} />
				<FilterSelect name="state" label={t("State")} data={[{ value: "connected", label: t("Connected now") }]} />
				<FilterSelect name="order" label={t("Sort by")} data={optionsOf(ORDERS)} all={t("Default order")} />
				{isNarrowed && (
					<ActButton
						label={t("Show all")}
						onClick={() => change({ search: null, kind: null, can: null, context: null, state: null })}
					/>
				)}
			</SimpleGrid>
			<Panel flush title={t("Catalogue")}>
				<ModelTable rows={rows} error={models.error} retry={() => void models.reload()} searched={isNarrowed} />
			</Panel>
		</Page>
	);
}

function narrowed(models: readonly ModelView[], query: URLSearchParams): readonly ModelView[] {
	const wanted = (query.get("search") ?? "").trim().toLowerCase();
	const ability = ABILITIES.find(({ value }) => value === query.get("can"));
	const context = Number(query.get("context") ?? 0);
	const rows = models.filter(
		(model) =>
			`${model.id} ${model.name} ${model.kind}`.toLowerCase().includes(wanted) &&
			isWanted(query.get("kind"), model.kind) &&
			isWanted(query.get("state"), model.status) &&
			(ability?.has(model) ?? true) &&
			model.contextLength >= context,
	);
	const order = Object.hasOwn(ORDERS, query.get("order") ?? "") ? ORDERS[query.get("order") ?? ""] : undefined;
	return order ? rows.toSorted(order.compare) : rows;
}

const isWanted = (wanted: string | null, found: string): boolean => wanted === null || wanted === found;

const optionsOf = (items: Readonly<Record<string, string | { readonly label: string }>>) =>
	Object.entries(items).map(([value, item]) => ({ value, label: typeof item === "string" ? item : item.label }));

function ModelPage({ id }: { id: string }) {
	const { me } = useSession();
	const model = useResource(`model ${id}`, () => api.model(id, me?.account?.id ?? null));
	const item = model.data;
	return (
		<Page
			title={item?.name ?? id}
			lead={<CopyableId value={id} label={t("Copy the model's id")} />}
			aside={
				me?.account &&
				item?.modes.includes("chat") && (
					<ActButton label={t("Try it")} look="main" to={`/playground?model=${encodeURIComponent(id)}`} />
				)
			}
		>
			<LoadState of={model} height={320} />
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
					{rich(
						"No server for this model is connected: requests fail with status 503. See the <link>status page</link>.",
						{ link: (inner) => <a href="/status">{inner}</a> },
					)}
				</Notice>
			)}
			{item.retiresOn && (
				<Notice kind="warn">
					{rich(
						"This model retires on {retiresOn} (UTC). After that, requests fail with status 404. <link>All models</link>",
						{ retiresOn: formatDay(Date.parse(item.retiresOn)), link: linkRenderer("/models") },
					)}
				</Notice>
			)}
			<SimpleGrid minColWidth="min(100%, 320px)" autoFlow="auto-fit">
				<Panel title={t("Model")}>
					<DetailList
						of={{
							[t("State")]: <ModelState model={item} />,
							[t("Replicas")]: t("{up} of {total} up", {
								up: formatCount(item.replicas.up),
								total: formatCount(item.replicas.total),
							}),
							[t("Kind")]: KIND_LABELS[item.kind] ?? item.kind,
							[t("Modes")]: item.modes.join(", ") || "–",
							[t("Context")]: tokensText(item.contextLength),
							[t("Maximum output")]: tokensText(item.maxOutputTokens),
							[t("Input types")]: item.inputModalities.join(", "),
							[t("Output types")]: item.outputModalities.join(", "),
							[t("Supported parameters")]: item.parameters.join(", ") || t("None"),
						}}
					/>
				</Panel>
				<SpeedPanel speed={item.speed} />
				<Panel title={t("Rates in USD")}>
					<DetailList
						of={Object.fromEntries(
							used.map(({ name, label, show }) => [
								label,
								<span key={name} className="num">
									{show(item.rates[name])}
								</span>,
							]),
						)}
					/>
					{item.agreed && (
						<p className="small dim">{t("Agreed with your account. The rate history has the list prices.")}</p>
					)}
				</Panel>
			</SimpleGrid>
			{item.modes.includes("chat") && (
				<Panel title={t("Quick start")}>
					<CodeTabs
						snippets={chatSnippets({
							baseUrl: config.baseUrl,
							model: item.id,
							messages: [{ role: "user", content: t("Hello!") }],
						})}
					/>
				</Panel>
			)}
			<TablePanel
				title={t("Rate history")}
				rows={item.history}
				empty={<Empty title={t("No history yet.")} />}
				columns={[
					{
						label: t("Version"),
						lead: true,
						render: (entry) => <span className="num">{t("Version {version}", { version: entry.version })}</span>,
					},
					{ label: t("Since"), render: (entry) => <Timestamp atMs={entry.storedAtMs} /> },
					...used.map(({ name, label, show }) => ({
						label,
						figure: (entry: ModelDetail["history"][number]) => show(entry.rates[name]),
					})),
				]}
			/>
		</>
	);
}

const tokensText = (count: number) => (count > 0 ? t("{count} tokens", { count: formatCount(count) }) : "–");

function SpeedPanel({ speed }: { speed: ModelDetail["speed"] }) {
	return (
		<Panel title={t("Speed")}>
			{speed === null ? (
				<Empty title={t("Not enough streamed responses in the last day.")} />
			) : (
				<>
					<DetailList
						of={{
							[t("First token, median")]: formatDuration(speed.firstTokenMs),
							[t("Tokens per second, median")]:
								speed.tokensPerSecond === null ? t("Not enough long responses") : formatCount(speed.tokensPerSecond),
						}}
					/>
					<p className="small dim">
						{t(
							"Measured on {requests} streamed responses of all customers in the last day, accurate to 6 %. Time to first token starts when the request arrives. Tokens per second count after it, in responses of at least 16 tokens.",
							{ requests: formatCount(speed.requests) },
						)}
					</p>
				</>
			)}
		</Panel>
	);
}
