import { MultiSelect, NumberInput, Select, SimpleGrid, TextInput } from "@mantine/core";
import { useState } from "react";
import type { CapPeriod } from "../../keys/cap-period.ts";
import { formatUsd } from "../../money/nano-usd.ts";
import { api, type Fence, type KeySettingsInput, type KeyView, type ProjectView } from "../api.ts";
import { ActForm, FencedDialog } from "../parts/dialog.tsx";
import { TextField } from "../parts/fields.tsx";
import { useAction, useResource } from "../resource.ts";
import { useAccount, useMay, useModels } from "../session.tsx";
import { NUMBER_SEPARATORS, t } from "../texts.tsx";

export const EMPTY_DRAFT = {
	name: "",
	capUsd: "",
	capPeriod: "lifetime" as CapPeriod,
	models: [] as string[],
	/** Value of `<input type="datetime-local">`, in the browser's time zone. */
	expires: "",
	requestsPerMinute: "",
	concurrencyMax: "",
	tokensPerMinute: "",
	projectId: "",
};
/** The form's fields as text, exactly as typed. */
type KeyDraft = Readonly<typeof EMPTY_DRAFT>;

export function toKeyDraft(
	key: Pick<KeyView, "name" | "capNanoUsd" | "capPeriod" | "models" | LimitName> &
		Partial<Pick<KeyView, "expiresAtMs" | "projectId">>,
): KeyDraft {
	const { expiresAtMs = null } = key;
	return {
		name: key.name,
		capUsd: key.capNanoUsd === null ? "" : formatUsd(key.capNanoUsd),
		capPeriod: key.capPeriod,
		models: [...key.models],
		expires: expiresAtMs === null ? "" : localInput(expiresAtMs),
		requestsPerMinute: String(key.requestsPerMinute ?? ""),
		concurrencyMax: String(key.concurrencyMax ?? ""),
		tokensPerMinute: String(key.tokensPerMinute ?? ""),
		projectId: key.projectId ?? "",
	};
}

/** Returns the settings to send. An empty field is omitted for a new key, and null (remove) for an existing one. */
export function settingsOf(draft: KeyDraft, mode: "create" | "edit"): KeySettingsInput {
	const number = (text: string) => (text === "" ? null : Number(text));
	const settings = {
		name: draft.name.trim(),
		capUsd: draft.capUsd === "" ? null : draft.capUsd,
		capPeriod: draft.capPeriod,
		models: draft.models,
		expiresAtMs: draft.expires === "" ? null : new Date(draft.expires).getTime(),
		requestsPerMinute: number(draft.requestsPerMinute),
		concurrencyMax: number(draft.concurrencyMax),
		tokensPerMinute: number(draft.tokensPerMinute),
		projectId: draft.projectId === "" ? null : draft.projectId,
	};
	if (mode === "edit") return settings;
	const given = Object.entries(settings).filter(([, value]) => value !== null);
	return Object.fromEntries(given) as unknown as KeySettingsInput;
}

/** Returns only edited settings: sending an unedited amount would store the rounded value that the form shows. */
function changesOf(draft: KeyDraft, before: KeyDraft): Partial<KeySettingsInput> {
	const old: Readonly<Record<string, unknown>> = { ...settingsOf(before, "edit") };
	const isNew = ([name, value]: [string, unknown]) => JSON.stringify(value) !== JSON.stringify(old[name]);
	return Object.fromEntries(Object.entries(settingsOf(draft, "edit")).filter(isNew));
}

const PERIODS: { value: CapPeriod; label: string }[] = [
	{ value: "lifetime", label: t("Lifetime") },
	{ value: "day", label: t("Daily") },
	{ value: "week", label: t("Weekly") },
	{ value: "month", label: t("Monthly") },
];

/** Properties of a group of fields. `wrong` returns the error to show at a field. */
interface Part {
	readonly draft: KeyDraft;
	wrong(param: string): string | undefined;
	set(changes: Partial<KeyDraft>): void;
}

/** Fields of a key or project. `error.param` names the field that the service refused. */
export function KeyFields(props: {
	draft: KeyDraft;
	onChange: (draft: KeyDraft) => void;
	error?: { param: string | null; message: string } | undefined;
	/** True for a read-only key: it cannot spend, so only its name and expiry are shown. */
	readsOnly?: boolean;
	/** True for a project, which has no expiry. Its limits apply to all of its keys together. */
	ofProject?: boolean;
	projects?: readonly ProjectView[] | undefined;
}) {
	const { draft, onChange, error, readsOnly = false, ofProject = false, projects = [] } = props;
	const wrong = (param: string) => (error?.param === param ? error.message : undefined);
	const set = (changes: Partial<KeyDraft>) => onChange({ ...draft, ...changes });
	const part = { draft, wrong, set };
	return (
		<>
			<TextField
				label={t("Name")}
				description={ofProject ? t("A team or a product") : t("Application and environment that use this key")}
				placeholder={ofProject ? "" : t("search-api production")}
				maxLength={100}
				data-autofocus
				value={draft.name}
				error={wrong("name")}
				onChange={(name) => set({ name })}
			/>
			{!readsOnly && projects.length > 0 && (
				<Select
					label={t("Project")}
					description={t("Its spend also counts against the project's cap.")}
					placeholder={t("No project")}
					data={projects.map(({ id, name }) => ({ value: id, label: name }))}
					clearable
					clearButtonProps={{ "aria-label": t("No project") }}
					value={draft.projectId === "" ? null : draft.projectId}
					error={wrong("projectId")}
					onChange={(chosen) => set({ projectId: chosen ?? "" })}
				/>
			)}
			{!readsOnly && <SpendFields {...part} ofProject={ofProject} />}
			{!ofProject && (
				<TextInput
					label={t("Expires")}
					description={t("Optional, in your local time")}
					type="datetime-local"
					// Browsers accept five-digit years but cannot parse them, and the key would never expire.
					max="9999-12-31T23:59"
					value={draft.expires}
					error={wrong("expiresAtMs")}
					onChange={(event) => set({ expires: event.currentTarget.value })}
				/>
			)}
			{!readsOnly && <LimitFields {...part} />}
		</>
	);
}

function SpendFields({ draft, wrong, set, ofProject }: Part & { ofProject: boolean }) {
	const models = useModels();
	const known = models.data?.items.map((model) => model.id) ?? [];
	return (
		<>
			<SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
				<NumberInput
					label={t("Cap in USD")}
					description={
						ofProject
							? t("Optional. Shared by all keys of the project")
							: t("Optional. Running requests count with their maximum cost")
					}
					placeholder={t("No cap")}
					allowNegative={false}
					min={0}
					decimalScale={9}
					{...NUMBER_SEPARATORS}
					hideControls
					value={draft.capUsd}
					error={wrong("capUsd")}
					onValueChange={(value) => set({ capUsd: value.value })}
				/>
				<Select
					label={t("Cap period")}
					description={t("In the account's time zone")}
					data={PERIODS}
					allowDeselect={false}
					disabled={draft.capUsd === ""}
					value={draft.capPeriod}
					error={wrong("capPeriod")}
					onChange={(chosen) => set({ capPeriod: chosen as CapPeriod })}
				/>
			</SimpleGrid>
			<MultiSelect
				label={t("Models")}
				description={t("Optional. Empty allows all models, including future ones.")}
				placeholder={draft.models.length === 0 ? t("All models") : ""}
				data={[...new Set([...known, ...draft.models])]}
				searchable
				clearable
				value={draft.models}
				error={wrong("models")}
				onChange={(chosen) => set({ models: chosen })}
				nothingFoundMessage={t("No models found")}
				clearButtonProps={{ "aria-label": t("Allow all models") }}
			/>
		</>
	);
}

const LIMITS = {
	requestsPerMinute: t("Requests per minute"),
	concurrencyMax: t("Concurrent requests"),
	tokensPerMinute: t("Tokens per minute"),
};
type LimitName = keyof typeof LIMITS;

function LimitFields({ draft, wrong, set }: Part) {
	return (
		<SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
			{(["requestsPerMinute", "concurrencyMax", "tokensPerMinute"] as const).map((name) => (
				<NumberInput
					key={name}
					label={LIMITS[name]}
					placeholder={t("No limit")}
					allowNegative={false}
					min={1}
					allowDecimal={false}
					hideControls
					value={draft[name]}
					error={wrong(name)}
					onValueChange={({ value }) => set({ [name]: value })}
				/>
			))}
		</SimpleGrid>
	);
}

function localInput(atMs: number): string {
	return new Date(atMs - new Date(atMs).getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

/** Returns the active projects; undefined while they load, or if `wanted` is false. */
export function useProjectChoice(wanted: boolean): readonly ProjectView[] | undefined {
	const account = useAccount();
	const may = useMay();
	const isAsked = wanted && may("projects.see");
	const { data } = useResource(isAsked ? `project-choice ${account.id}` : null, () => api.projects(account.id));
	return data?.items.filter(({ state }) => state === "active");
}

/** Dialog that edits a key or project, and then shows when all instances have applied the change. */
export function SettingsDialog(props: {
	title: string;
	item: Parameters<typeof toKeyDraft>[0];
	fields: Pick<Parameters<typeof KeyFields>[0], "readsOnly" | "ofProject" | "projects">;
	onSave: (changes: Partial<KeySettingsInput>) => Promise<{ readonly fence: Fence }>;
	onClose: () => void;
}) {
	const [before] = useState(() => toKeyDraft(props.item));
	const [draft, setDraft] = useState(before);
	const [fence, setFence] = useState<Fence>();
	const save = useAction(async () => setFence((await props.onSave(changesOf(draft, before))).fence));
	return (
		<FencedDialog
			title={props.title}
			fence={fence}
			done={t("The change applies on all instances")}
			onClose={props.onClose}
		>
			<ActForm action={save} act={t("Save")} onCancel={props.onClose}>
				<KeyFields {...props.fields} draft={draft} onChange={setDraft} error={save.error} />
			</ActForm>
		</FencedDialog>
	);
}
