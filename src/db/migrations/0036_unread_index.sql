-- Nothing reads it, and each settlement wrote to it. A check of the books may read the table for a minute and more: who
-- waited for it in the usual way would hold up all settlements behind himself, so this asks again and again instead.
DO $$
BEGIN
  SET LOCAL lock_timeout = '100ms';
  FOR attempt IN 1..3000 LOOP
    BEGIN
      DROP INDEX "usage_event_lease";
      RETURN;
    EXCEPTION WHEN lock_not_available THEN
      PERFORM pg_sleep(0.1);
    END;
  END LOOP;
  SET LOCAL lock_timeout = 0;
  DROP INDEX "usage_event_lease";
END $$;
