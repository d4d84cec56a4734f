import { Button } from "@mantine/core";
import { useEffect, useState } from "react";
import { api } from "../../api.ts";
import { canAsk } from "../../key-use.ts";
import { Page, Panel } from "../../parts/page.tsx";
import { Empty, Notice, Reading } from "../../parts/problem.tsx";
import { PageWaiting } from "../../parts/waiting.tsx";
import { useResource } from "../../resource.ts";
import { Link } from "../../router.tsx";
import { useAccount } from "../../session.tsx";
import { t } from "../../texts.tsx";
import { FRESH_SETUP } from "./conversation.ts";
import { Conversation } from "./conversation-panels.tsx";
import { isSharedFragment, type Shared, sharedOf } from "./share-link.ts";

const FRESH: Shared = { threads: [], setup: FRESH_SETUP };

export default function PlaygroundPage() {
	const account = useAccount();
	const models = useResource("models", api.models);
	const keys = useResource(`keys ${account.id}`, () => api.keys(account.id));
	const link = useSharedLink();
	const usable = keys.data?.items.filter(canAsk);
	if (usable?.length === 0) {
		return (
			<Page title={t("Playground")}>
				<Panel>
					<Empty
						title={t("A key is needed.")}
						action={
							<Button component={Link} to="/keys?create=1">
								{t("Create a key")}
							</Button>
						}
					>
						{t("Requests of the playground are charged to one of your keys, with its cap and its models.")}
					</Empty>
				</Panel>
			</Page>
		);
	}
	if (link.state === "reading") return <PageWaiting />;
	return (
		<Page
			title={t("Playground")}
			lead={t("Charged to the key that is chosen, like any other request. Nothing that is typed here is stored.")}
		>
			<Reading of={models} />
			<Reading of={keys} />
			{link.state === "broken" && <Notice kind="warn">{t("The link held no conversation that can be read.")}</Notice>}
			{link.state === "read" && <Notice>{t("From a link. Nothing is sent before you send a message.")}</Notice>}
			<Conversation
				key={link.state}
				start={link.state === "read" ? link.shared : FRESH}
				keys={usable ?? []}
				models={models.data?.items.filter((model) => model.modes.includes("chat")) ?? []}
			/>
		</Page>
	);
}

type SharedLink =
	| { readonly state: "none" | "reading" | "broken" }
	| { readonly state: "read"; readonly shared: Shared };

/** The conversation of the opened link. The fragment is then removed from the address. */
function useSharedLink(): SharedLink {
	const [link, setLink] = useState<SharedLink>({ state: isSharedFragment(location.hash) ? "reading" : "none" });
	useEffect(() => {
		const read = () => {
			const fragment = location.hash;
			if (!isSharedFragment(fragment)) return;
			history.replaceState(history.state, "", location.pathname + location.search);
			setLink({ state: "reading" });
			void sharedOf(fragment).then((shared) => setLink(shared ? { state: "read", shared } : { state: "broken" }));
		};
		read();
		addEventListener("hashchange", read);
		return () => removeEventListener("hashchange", read);
	}, []);
	return link;
}
