import type { AlertType } from "../console/views.ts";
import type { client } from "./client.ts";

export interface NoticeForm {
	readonly mail: "maker" | "owners" | null;
	readonly webhookUrl: string | null;
	readonly events: readonly AlertType[];
}

/** Changed settings of notices; absent fields keep their value. */
export type NoticeChanges = Omit<Parameters<(typeof client)["batch-notices"]["put"]>[0], "token">;

/** Returns only changed fields, so that changes of other fields in another tab are kept. */
export function noticeChanges(before: NoticeForm, wanted: NoticeForm): NoticeChanges {
	const { mail, webhookUrl, events } = wanted;
	const added = events.filter((type) => !before.events.includes(type));
	const removed = before.events.filter((type) => !events.includes(type));
	return {
		...(mail === before.mail ? {} : { mail }),
		...(webhookUrl === before.webhookUrl ? {} : { webhookUrl }),
		...(added.length === 0 ? {} : { eventsAdded: added }),
		...(removed.length === 0 ? {} : { eventsRemoved: removed }),
	};
}
