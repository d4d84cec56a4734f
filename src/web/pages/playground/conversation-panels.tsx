import { Button, Select, SimpleGrid, Stack } from "@mantine/core";
import { useState } from "react";
import { api } from "../../api.ts";
import { keyLabel } from "../../labels.ts";
import { Panel } from "../../parts/page.tsx";
import { Notice } from "../../parts/problem.tsx";
import { useQueryState } from "../../router.tsx";
import { useAccount } from "../../session.tsx";
import { t } from "../../texts.tsx";
import type { KeyView, ModelView } from "../../views.ts";
import { Composer } from "./composer.tsx";
import { openCalls, readSchema, readTools } from "./conversation.ts";
import { AsCode, LinkButton } from "./keep.tsx";
import { SetupForm } from "./setup-form.tsx";
import type { Shared } from "./share-link.ts";
import { ThreadView } from "./thread.tsx";
import { type Thread, useThread } from "./use-thread.ts";

/**
 * A conversation with one model, or with two that receive the same messages. The address has the models and the key.
 */
export function Conversation({
	start,
	keys,
	models,
}: {
	start: Shared;
	keys: readonly KeyView[];
	models: readonly ModelView[];
}) {
	const account = useAccount();
	const { key, offered, model, other, change } = useChosen(start, keys, models);
	const [setup, setSetup] = useState(start.setup);
	const [showCode, setShowCode] = useState(false);

	const address = key && api.playgroundAddress(account.id, key.id);
	const first = useThread(address, model, setup, start.threads[0]?.turns ?? []);
	const second = useThread(address, other, setup, start.threads[1]?.turns ?? []);
	const threads = [...(model ? [{ model, thread: first }] : []), ...(other ? [{ model: other, thread: second }] : [])];
	const asked = threads.map((item) => item.model);
	const busy = threads.some(({ thread }) => thread.busy);
	const isWrong = readTools(setup.tools).problem !== undefined || readSchema(setup.schema).problem !== undefined;
	const isReady = key !== undefined && threads.length > 0 && !isWrong;
	const waits = threads.some(({ thread }) => openCalls(thread.turns).length > 0);

	function each(act: (thread: Thread) => void): void {
		for (const { thread } of threads) act(thread);
	}
	function compareWith(id: string | null): void {
		// The second model continues from the first one's conversation.
		if (id !== null && other === undefined) second.set(first.turns);
		if (id === null) second.stop();
		change({ with: id ?? NONE });
	}
	return (
		<div className="side-by-side">
			<Panel
				title={t("Conversation")}
				aside={
					<>
						<LinkButton
							shared={{ setup, threads: threads.map((item) => ({ model: item.model.id, turns: item.thread.turns })) }}
							disabled={first.turns.length === 0 || busy}
						/>
						<Button size="xs" variant="default" onClick={() => setShowCode(!showCode)} aria-pressed={showCode}>
							{showCode ? t("Hide the code") : t("Show as code")}
						</Button>
						<Button
							size="xs"
							variant="default"
							disabled={busy || threads.every(({ thread }) => thread.turns.length === 0)}
							onClick={() => each((thread) => thread.set([]))}
						>
							{t("Clear")}
						</Button>
					</>
				}
			>
				<Stack gap={14}>
					<SimpleGrid minColWidth="min(100%, 300px)" autoFlow="auto-fit" spacing="lg">
						{threads.map(({ model: { id, name }, thread }, place) => (
							<ThreadView key={place === 0 ? "first" : "second"} name={name || id} thread={thread} />
						))}
					</SimpleGrid>
					<Composer
						pictures={asked.length > 0 && asked.every((item) => item.inputModalities.includes("image"))}
						state={busy ? "busy" : waits ? "waiting" : isReady ? "ready" : "off"}
						onSend={(turn) => each((thread) => thread.ask([turn]))}
						onStop={() => each((thread) => thread.stop())}
					/>
					{showCode && model && <AsCode model={model} turns={first.turns} setup={setup} />}
				</Stack>
			</Panel>
			<Panel title={t("Request")}>
				<Stack gap="sm">
					<Select
						label={t("Model")}
						data={choices(offered)}
						searchable
						allowDeselect={false}
						value={model?.id ?? null}
						onChange={(value) => change({ model: value })}
					/>
					<Select
						label={t("Compare with")}
						placeholder={t("One model alone")}
						data={choices(offered)}
						searchable
						clearable
						clearButtonProps={{ "aria-label": t("Compare no more") }}
						value={other?.id ?? null}
						onChange={compareWith}
					/>
					{asked.some((item) => item.status === "unavailable") && (
						<Notice kind="warn">
							{asked.length > 1
								? t("One of the models is not connected right now.")
								: t("This model is not connected right now.")}
						</Notice>
					)}
					<Select
						label={t("Key")}
						data={keys.map((item) => ({ value: item.id, label: keyLabel(item) }))}
						allowDeselect={false}
						value={key?.id ?? null}
						onChange={(value) => change({ key: value })}
					/>
					<SetupForm models={asked} setup={setup} onChange={setSetup} />
				</Stack>
			</Panel>
		</div>
	);
}

/** The choice in the address; else the shared link's, or a connected model. */
function useChosen(start: Shared, keys: readonly KeyView[], models: readonly ModelView[]) {
	const [query, change] = useQueryState();
	const key = keys.find((item) => item.id === query.get("key")) ?? keys[0];
	const offered = models.filter(
		(model) => key === undefined || key.models.length === 0 || key.models.includes(model.id),
	);
	const named = (id: string | null | undefined) => offered.find((item) => item.id === id);
	const model =
		named(query.get("model") ?? start.threads[0]?.model) ??
		offered.find((item) => item.status === "connected") ??
		offered[0];
	// NONE is a choice too: it overrides the second model of a shared link.
	const other = named(query.has("with") ? query.get("with") : start.threads[1]?.model);
	return { key, offered, model, other, change };
}

/** Value of `with` in the address for "no second model". */
const NONE = "none";

const choices = (models: readonly ModelView[]) => models.map(({ id, name }) => ({ value: id, label: name }));
