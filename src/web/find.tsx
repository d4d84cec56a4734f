import { Group, Stack, TextInput } from "@mantine/core";
import { useState } from "react";
import { api } from "./api.ts";
import type { Destination } from "./navigation.ts";
import { Dialog } from "./parts/dialog.tsx";
import { Form } from "./parts/form.tsx";
import { useResource } from "./resource.ts";
import { Link, navigate } from "./router.tsx";
import { useSession } from "./session.tsx";
import { t } from "./texts.tsx";

/** With more matches the user types on. */
const SHOWN_MAX = 10;
const AT_ONCE = { duration: 0 };

interface Found {
	readonly to: string;
	readonly name: string;
	readonly kind: string;
	readonly apart?: true;
}

/**
 * Finds pages, keys, models and requests on pages without a search of their own. It opens without a transition and
 * takes the focus at once, so that nothing typed is lost.
 */
export function Find(props: { opened: boolean; places: readonly Destination[]; onClose: () => void }) {
	return (
		<Dialog opened={props.opened} onClose={props.onClose} title={t("Find")} transitionProps={AT_ONCE} returnFocus>
			<Results places={props.places} onGone={props.onClose} />
		</Dialog>
	);
}

function Results({ places, onGone }: { places: readonly Destination[]; onGone: () => void }) {
	const [wanted, setWanted] = useState("");
	const found = useFound(places, wanted.trim());
	function go(one: Found) {
		onGone();
		if (one.apart) location.assign(one.to);
		else navigate(one.to);
	}
	return (
		<Form
			onSubmit={() => {
				if (found[0]) go(found[0]);
			}}
		>
			<TextInput
				label={t("Page, key, model or request id")}
				description={t("Enter opens the first")}
				data-autofocus
				autoFocus
				autoComplete="off"
				value={wanted}
				onChange={(event) => setWanted(event.currentTarget.value)}
			/>
			<Stack component="ul" className="bare" gap="xs" aria-label={t("Found")} aria-live="polite">
				{found.map((one) => (
					<Group component="li" key={`${one.kind} ${one.to}`} justify="space-between">
						{one.apart ? (
							<a href={one.to}>{one.name}</a>
						) : (
							<Link to={one.to} onClick={onGone}>
								{one.name}
							</Link>
						)}
						<span className="dim small">{one.kind}</span>
					</Group>
				))}
			</Stack>
			{found.length === 0 && <p className="dim">{t("Nothing matches.")}</p>}
		</Form>
	);
}

function useFound(places: readonly Destination[], wanted: string): Found[] {
	const account = useSession().me?.account;
	const models = useResource("models", api.models);
	const keys = useResource(account ? `keys ${account.id}` : null, () => api.keys(account?.id ?? ""));
	const isRequest = account && /^(req_)?[0-9a-f-]{16,36}$/i.test(wanted);
	const all: Found[] = [
		...places.map(({ to, label, apart }): Found => ({ to, name: label, kind: t("Page"), ...(apart ? { apart } : {}) })),
		...(keys.data?.items ?? []).map(({ id, name }): Found => ({ to: `/keys/${id}`, name, kind: t("Key") })),
		...(models.data?.items ?? []).map(({ id }): Found => ({ to: `/models/${id}`, name: id, kind: t("Model") })),
	];
	const matching = all.filter(({ name }) => name.toLowerCase().includes(wanted.toLowerCase()));
	const request: Found = { to: `/requests/${encodeURIComponent(wanted)}`, name: wanted, kind: t("Request") };
	return [...(isRequest ? [request] : []), ...matching].slice(0, SHOWN_MAX);
}
