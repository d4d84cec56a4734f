import { Select, SimpleGrid } from "@mantine/core";
import type { ReactNode } from "react";
import { api } from "../api.ts";
import { keyLabel, REQUEST_STATUSES } from "../labels.ts";
import { BUCKETS, DATE_RANGES, ownRange } from "../range.ts";
import { useResource } from "../resource.ts";
import { useQueryState } from "../router.tsx";
import { useAccount, useMay, useModels } from "../session.tsx";
import { formatDate, t } from "../texts.tsx";

interface Choice {
	readonly value: string;
	readonly label: string;
}

const STATUSES = Object.entries(REQUEST_STATUSES).map(([value, label]) => ({ value, label }));
const LOG_STATUSES = [...STATUSES, { value: "refused", label: t("Refused") }];

/** Filter whose value is the URL parameter `name`, so that the view can be shared. */
export function FilterSelect(props: {
	name: string;
	label: string;
	data: readonly Choice[];
	all?: string;
	searchable?: boolean;
}) {
	const { name, label, data, all = t("All"), searchable = false } = props;
	const [query, change] = useQueryState();
	const value = query.get(name);
	const isListed = value === null || data.some((choice) => choice.value === value);
	return (
		<Select
			label={label}
			size="xs"
			data={isListed ? data : [...data, { value, label: value }]}
			searchable={searchable}
			clearable
			clearButtonProps={{ "aria-label": t("{label}: any", { label }) }}
			placeholder={all}
			value={value}
			onChange={(chosen) => change({ [name]: chosen })}
		/>
	);
}

export function UsageFilters({ range = "7d", refused = false }: { range?: string; refused?: boolean }) {
	const account = useAccount();
	const may = useMay();
	const [query] = useQueryState();
	const keys = useResource(`keys ${account.id}`, () => api.keys(account.id));
	// Includes archived projects, whose usage stays visible.
	const projects = useResource(may("projects.see") ? `projects-filter ${account.id}` : null, () =>
		api.projects(account.id),
	);
	const projectChoices = projects.data?.items.map(({ id, name }) => ({ value: id, label: name })) ?? [];
	return (
		<FilterGrid>
			<RangeSelect range={range} />
			{!refused && <FilterSelect name="bucket" label={t("Interval")} data={BUCKETS} all={t("Automatic")} />}
			<ModelSelect />
			<FilterSelect
				name="key"
				label={t("Key")}
				data={keys.data?.items.map((key) => ({ value: key.id, label: keyLabel(key) })) ?? []}
				searchable
			/>
			{(projectChoices.length > 0 || query.has("project")) && (
				<FilterSelect
					name="project"
					label={t("Project")}
					data={[{ value: "none", label: t("No project") }, ...projectChoices]}
					searchable
				/>
			)}
			<FilterSelect name="status" label={t("Status")} data={refused ? LOG_STATUSES : STATUSES} />
		</FilterGrid>
	);
}

/** Filters of operators' pages, which cover all accounts. */
export const ServiceFilters = ({ range }: { range: string }) => (
	<FilterGrid>
		<RangeSelect range={range} />
		<FilterSelect name="bucket" label={t("Interval")} data={BUCKETS} all={t("Automatic")} />
		<ModelSelect />
	</FilterGrid>
);

const FilterGrid = ({ children }: { children: ReactNode }) => (
	<SimpleGrid minColWidth="min(50% - 8px, 150px)" autoFlow="auto-fit" spacing="xs">
		{children}
	</SimpleGrid>
);

function ModelSelect() {
	const choices = useModels().data?.items.map(({ id }) => ({ value: id, label: id })) ?? [];
	return <FilterSelect name="model" label={t("Model")} data={choices} searchable />;
}

/** Select field of the time range. `range` is the default when the URL has none. */
function RangeSelect({ range }: { range: string }) {
	const [query, change] = useQueryState();
	const own = ownRange(query);
	const ranges = own
		? [...DATE_RANGES, { value: "custom", label: customLabel(own.fromMs, own.toMs) }]
		: [...DATE_RANGES];
	return (
		<Select
			label={t("Time")}
			size="xs"
			data={ranges}
			allowDeselect={false}
			value={own ? "custom" : (query.get("range") ?? range)}
			onChange={(value) => {
				if (value !== "custom") change({ range: value === range ? null : value, from: null, to: null });
			}}
		/>
	);
}

function customLabel(fromMs: number, toMs: number): string {
	return toMs - fromMs <= 86_400_000
		? formatDate(fromMs)
		: t("{from} to {to}", { from: formatDate(fromMs), to: formatDate(toMs) });
}
