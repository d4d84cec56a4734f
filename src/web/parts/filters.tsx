import { Select, SimpleGrid } from "@mantine/core";
import { api } from "../api.ts";
import { formatDate } from "../format.ts";
import { keyLabel } from "../labels.ts";
import { ownRange, RANGES } from "../range.ts";
import { useResource } from "../resource.ts";
import { useQueryState } from "../router.tsx";
import { useAccount, useMay } from "../session.tsx";
import { t } from "../texts.tsx";

const STATUSES = [
	{ value: "ok", label: t("Answered") },
	{ value: "failed", label: t("Failed") },
	{ value: "left", label: t("Client left") },
];

const LOG_STATUSES = [...STATUSES, { value: "refused", label: t("Refused") }];

/** Range, model, key, project and status. All are in the address, so that a view can be shared. */
export function UsageFilters({ range = "7d", refused = false }: { range?: string; refused?: boolean }) {
	const account = useAccount();
	const [query, change] = useQueryState();
	const models = useResource("models", api.models);
	const keys = useResource(`keys ${account.id}`, () => api.keys(account.id));
	const model = query.get("model");
	const modelIds = [...new Set([...(models.data?.items.map((item) => item.id) ?? []), ...(model ? [model] : [])])];
	const own = ownRange(query);
	const ranges = own ? [...RANGES, { value: "custom", label: customLabel(own.fromMs, own.toMs) }] : [...RANGES];
	return (
		<SimpleGrid minColWidth="min(50% - 8px, 150px)" autoFlow="auto-fit" spacing="xs">
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
			<Select
				label={t("Model")}
				size="xs"
				data={modelIds}
				searchable
				clearable
				placeholder={t("All")}
				value={model}
				onChange={(value) => change({ model: value })}
				clearButtonProps={{ "aria-label": t("All models") }}
			/>
			<Select
				label={t("Key")}
				size="xs"
				data={keys.data?.items.map((key) => ({ value: key.id, label: keyLabel(key) })) ?? []}
				searchable
				clearable
				placeholder={t("All")}
				value={query.get("key")}
				onChange={(value) => change({ key: value })}
				clearButtonProps={{ "aria-label": t("All keys") }}
			/>
			<ProjectFilter />
			<Select
				label={t("Status")}
				size="xs"
				data={refused ? LOG_STATUSES : STATUSES}
				clearable
				placeholder={t("All")}
				value={query.get("status")}
				onChange={(value) => change({ status: value })}
				clearButtonProps={{ "aria-label": t("Any status") }}
			/>
		</SimpleGrid>
	);
}

/** Hidden without projects. */
function ProjectFilter() {
	const account = useAccount();
	const may = useMay();
	const [query, change] = useQueryState();
	const projects = useResource(may("projects.see") ? `projects-filter ${account.id}` : null, () =>
		api.projects(account.id),
	);
	const project = query.get("project");
	// Archived projects too, since their usage stays.
	const choices = projects.data?.items.map(({ id, name }) => ({ value: id, label: name })) ?? [];
	// The usage page links here without a project too.
	if (choices.length > 0 || project === "none") choices.unshift({ value: "none", label: t("No project") });
	if (project !== null && !choices.some(({ value }) => value === project))
		choices.push({ value: project, label: project });
	if (choices.length === 0) return null;
	return (
		<Select
			label={t("Project")}
			size="xs"
			data={choices}
			searchable
			clearable
			placeholder={t("All")}
			value={project}
			onChange={(value) => change({ project: value })}
			clearButtonProps={{ "aria-label": t("All projects") }}
		/>
	);
}

function customLabel(fromMs: number, toMs: number): string {
	return toMs - fromMs <= 86_400_000
		? formatDate(fromMs)
		: t("{from} to {to}", { from: formatDate(fromMs), to: formatDate(toMs) });
}
