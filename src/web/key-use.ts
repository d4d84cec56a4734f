import type { KeyView } from "./views.ts";

type Used = Pick<KeyView, "state" | "readsOnly" | "projectState">;

/** Of a project that was archived, whatever the key's own state is: none of its requests is admitted. */
export const isArchived = ({ state, projectState }: Pick<Used, "state" | "projectState">): boolean =>
	state === "active" && projectState === "archived";

/** Whether models can be asked with it. */
export const canAsk = (key: Used): boolean => key.state === "active" && !isArchived(key) && !key.readsOnly;
