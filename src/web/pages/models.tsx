import { Button, SimpleGrid } from "@mantine/core";
import { api } from "../api.ts";
import { SearchField } from "../parts/fields.tsx";
import { FilterSelect } from "../parts/filters.tsx";
import { KINDS, ModelTable } from "../parts/model-table.tsx";
import { Page, Panel } from "../parts/page.tsx";
import { useResource } from "../resource.ts";
import { useQueryState } from "../router.tsx";
import { t } from "../texts.tsx";
import type { ModelView } from "../views.ts";

const ABILITIES: readonly { readonly value: string; readonly label: string; has(model: ModelView): boolean }[] = [
	{ value: "images", label: t("Takes pictures"), has: ({ inputModalities }) => inputModalities.includes("image") },
	{ value: "audio", label: t("Takes audio"), has: ({ inputModalities }) => inputModalities.includes("audio") },
	{ value: "tools", label: t("Calls tools"), has: ({ parameters }) => parameters.includes("tools") },
	{ value: "schema", label: t("Keeps to a schema"), has: ({ parameters }) => parameters.includes("response_format") },
	{ value: "logprobs", label: t("Log probabilities"), has: ({ parameters }) => parameters.includes("logprobs") },
];

const CONTEXTS = ["8192", "32768", "131072", "1000000"].map((value) => ({
	value,
	label: t("{value} tokens and more", { value: value === "1000000" ? "1M" : `${Number(value) / 1024}K` }),
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

/** The model catalogue. The filters are in the address, so that the view can be shared. */
export default function ModelsPage() {
	const models = useResource("models", api.models);
	const [query, change] = useQueryState();
	const rows = models.data && narrowed(models.data.items, query);
	const isNarrowed = ["search", "kind", "can", "context", "state"].some((name) => query.has(name));
	return (
		<Page
			title={t("Models")}
			lead={t("A rate that is listed does not say that the model is connected: the state does.")}
		>
			<SimpleGrid className="field-row" minColWidth="min(50% - 8px, 150px)" autoFlow="auto-fit" spacing="xs">
				<SearchField
					label={t("Search models")}
					placeholder={t("Search, press /")}
					value={query.get("search") ?? ""}
					onChange={(value) => change({ search: value })}
				/>
				<FilterSelect name="kind" label={t("Kind")} data={optionsOf(KINDS)} />
				<FilterSelect name="can" label={t("Ability")} data={ABILITIES} />
				<FilterSelect name="context" label={t("Context")} data={CONTEXTS} />
				<FilterSelect name="state" label={t("State")} data={[{ value: "connected", label: t("Connected now") }]} />
				<FilterSelect name="order" label={t("Order")} data={optionsOf(ORDERS)} all={t("Default order")} />
				{isNarrowed && (
					<Button
						size="xs"
						variant="default"
						onClick={() => change({ search: null, kind: null, can: null, context: null, state: null })}
					>
						{t("Show all")}
					</Button>
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
