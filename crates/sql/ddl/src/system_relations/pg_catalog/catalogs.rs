//! The tables of `pg_catalog`: names, OIDs and columns as in PostgreSQL 15, and the function that gives the rows.
//!
//! A type that has no values here (pg_node_tree ...) is written as text: those columns are always NULL.

use super::none;
use logstead_sql_catalog::VirtualTable;

/// Every table.
pub(super) static TABLES: &[VirtualTable] = virtual_tables! {
    "pg_catalog";
    2600 pg_aggregate = super::functions::pg_aggregate {
        aggfnoid REGPROC, aggkind CHAR, aggnumdirectargs INT2, aggtransfn REGPROC, aggfinalfn REGPROC,
        aggcombinefn REGPROC, aggserialfn REGPROC, aggdeserialfn REGPROC, aggmtransfn REGPROC, aggminvtransfn REGPROC,
        aggmfinalfn REGPROC, aggfinalextra BOOL, aggmfinalextra BOOL, aggfinalmodify CHAR, aggmfinalmodify CHAR,
        aggsortop OID, aggtranstype OID, aggtransspace INT4, aggmtranstype OID, aggmtransspace INT4, agginitval TEXT,
        aggminitval TEXT,
    }
    2601 pg_am = super::operator_classes::pg_am {
        oid OID, amname NAME, amhandler REGPROC, amtype CHAR,
    }
    2602 pg_amop = none {
        oid OID, amopfamily OID, amoplefttype OID, amoprighttype OID, amopstrategy INT2, amoppurpose CHAR,
        amopopr OID, amopmethod OID, amopsortfamily OID,
    }
    2603 pg_amproc = none {
        oid OID, amprocfamily OID, amproclefttype OID, amprocrighttype OID, amprocnum INT2, amproc REGPROC,
    }
    2604 pg_attrdef = super::relations::pg_attrdef {
        oid OID, adrelid OID, adnum INT2, adbin PG_NODE_TREE,
    }
    1249 pg_attribute = super::relations::pg_attribute {
        attrelid OID, attname NAME, atttypid OID, attstattarget INT4, attlen INT2, attnum INT2, attndims INT4,
        attcacheoff INT4, atttypmod INT4, attbyval BOOL, attalign CHAR, attstorage CHAR, attcompression CHAR,
        attnotnull BOOL, atthasdef BOOL, atthasmissing BOOL, attidentity CHAR, attgenerated CHAR, attisdropped BOOL,
        attislocal BOOL, attinhcount INT4, attcollation OID, attacl ACLITEM_ARRAY, attoptions TEXT_ARRAY,
        attfdwoptions TEXT_ARRAY, attmissingval ANYARRAY,
    }
    1261 pg_auth_members = super::roles::pg_auth_members {
        roleid OID, member OID, grantor OID, admin_option BOOL,
    }
    1260 pg_authid = super::roles::pg_authid {
        oid OID, rolname NAME, rolsuper BOOL, rolinherit BOOL, rolcreaterole BOOL, rolcreatedb BOOL, rolcanlogin BOOL,
        rolreplication BOOL, rolbypassrls BOOL, rolconnlimit INT4, rolpassword TEXT, rolvaliduntil TIMESTAMPTZ,
    }
    2605 pg_cast = super::functions::pg_cast {
        oid OID, castsource OID, casttarget OID, castfunc OID, castcontext CHAR, castmethod CHAR,
    }
    1259 pg_class = super::relations::pg_class {
        oid OID, relname NAME, relnamespace OID, reltype OID, reloftype OID, relowner OID, relam OID, relfilenode OID,
        reltablespace OID, relpages INT4, reltuples FLOAT4, relallvisible INT4, reltoastrelid OID, relhasindex BOOL,
        relisshared BOOL, relpersistence CHAR, relkind CHAR, relnatts INT2, relchecks INT2, relhasrules BOOL,
        relhastriggers BOOL, relhassubclass BOOL, relrowsecurity BOOL, relforcerowsecurity BOOL, relispopulated BOOL,
        relreplident CHAR, relispartition BOOL, relrewrite OID, relfrozenxid XID, relminmxid XID,
        relacl ACLITEM_ARRAY, reloptions TEXT_ARRAY, relpartbound PG_NODE_TREE,
    }
    3456 pg_collation = super::operator_classes::pg_collation {
        oid OID, collname NAME, collnamespace OID, collowner OID, collprovider CHAR, collisdeterministic BOOL,
        collencoding INT4, collcollate TEXT, collctype TEXT, colliculocale TEXT, collversion TEXT,
    }
    2606 pg_constraint = super::constraints::pg_constraint {
        oid OID, conname NAME, connamespace OID, contype CHAR, condeferrable BOOL, condeferred BOOL,
        convalidated BOOL, conrelid OID, contypid OID, conindid OID, conparentid OID, confrelid OID, confupdtype CHAR,
        confdeltype CHAR, confmatchtype CHAR, conislocal BOOL, coninhcount INT4, connoinherit BOOL, conkey INT2_ARRAY,
        confkey INT2_ARRAY, conpfeqop OID_ARRAY, conppeqop OID_ARRAY, conffeqop OID_ARRAY, confdelsetcols INT2_ARRAY,
        conexclop OID_ARRAY, conbin PG_NODE_TREE,
    }
    2607 pg_conversion = none {
        oid OID, conname NAME, connamespace OID, conowner OID, conforencoding INT4, contoencoding INT4,
        conproc REGPROC, condefault BOOL,
    }
    1262 pg_database = super::databases::pg_database {
        oid OID, datname NAME, datdba OID, encoding INT4, datlocprovider CHAR, datistemplate BOOL, datallowconn BOOL,
        datconnlimit INT4, datfrozenxid XID, datminmxid XID, dattablespace OID, datcollate TEXT, datctype TEXT,
        daticulocale TEXT, datcollversion TEXT, datacl ACLITEM_ARRAY,
    }
    2964 pg_db_role_setting = super::roles::pg_db_role_setting {
        setdatabase OID, setrole OID, setconfig TEXT_ARRAY,
    }
    826 pg_default_acl = super::roles::pg_default_acl {
        oid OID, defaclrole OID, defaclnamespace OID, defaclobjtype CHAR, defaclacl ACLITEM_ARRAY,
    }
    2608 pg_depend = super::pg_depend::pg_depend {
        classid OID, objid OID, objsubid INT4, refclassid OID, refobjid OID, refobjsubid INT4, deptype CHAR,
    }
    2609 pg_description = super::relations::pg_description {
        objoid OID, classoid OID, objsubid INT4, description TEXT,
    }
    3501 pg_enum = super::types::pg_enum {
        oid OID, enumtypid OID, enumsortorder FLOAT4, enumlabel NAME,
    }
    3466 pg_event_trigger = none {
        oid OID, evtname NAME, evtevent NAME, evtowner OID, evtfoid OID, evtenabled CHAR, evttags TEXT_ARRAY,
    }
    3079 pg_extension = super::extensions::pg_extension {
        oid OID, extname NAME, extowner OID, extnamespace OID, extrelocatable BOOL, extversion TEXT,
        extconfig OID_ARRAY, extcondition TEXT_ARRAY,
    }
    2328 pg_foreign_data_wrapper = none {
        oid OID, fdwname NAME, fdwowner OID, fdwhandler OID, fdwvalidator OID, fdwacl ACLITEM_ARRAY,
        fdwoptions TEXT_ARRAY,
    }
    1417 pg_foreign_server = none {
        oid OID, srvname NAME, srvowner OID, srvfdw OID, srvtype TEXT, srvversion TEXT, srvacl ACLITEM_ARRAY,
        srvoptions TEXT_ARRAY,
    }
    3118 pg_foreign_table = none {
        ftrelid OID, ftserver OID, ftoptions TEXT_ARRAY,
    }
    2610 pg_index = super::relations::pg_index {
        indexrelid OID, indrelid OID, indnatts INT2, indnkeyatts INT2, indisunique BOOL, indnullsnotdistinct BOOL,
        indisprimary BOOL, indisexclusion BOOL, indimmediate BOOL, indisclustered BOOL, indisvalid BOOL,
        indcheckxmin BOOL, indisready BOOL, indislive BOOL, indisreplident BOOL, indkey INT2VECTOR,
        indcollation OIDVECTOR, indclass OIDVECTOR, indoption INT2VECTOR, indexprs PG_NODE_TREE, indpred PG_NODE_TREE,
    }
    2611 pg_inherits = none {
        inhrelid OID, inhparent OID, inhseqno INT4, inhdetachpending BOOL,
    }
    3394 pg_init_privs = super::relations::pg_init_privs {
        objoid OID, classoid OID, objsubid INT4, privtype CHAR, initprivs ACLITEM_ARRAY,
    }
    2612 pg_language = super::extensions::pg_language {
        oid OID, lanname NAME, lanowner OID, lanispl BOOL, lanpltrusted BOOL, lanplcallfoid OID, laninline OID,
        lanvalidator OID, lanacl ACLITEM_ARRAY,
    }
    2613 pg_largeobject = none {
        loid OID, pageno INT4, data BYTEA,
    }
    2995 pg_largeobject_metadata = none {
        oid OID, lomowner OID, lomacl ACLITEM_ARRAY,
    }
    8613 logstead_large_objects = none {
        oid OID,
    }
    8614 logstead_large_object_rights = super::privileges::large_object_rights {
        oid OID, owner OID, acl ACLITEM_ARRAY,
    }
    2615 pg_namespace = super::relations::pg_namespace {
        oid OID, nspname NAME, nspowner OID, nspacl ACLITEM_ARRAY,
    }
    2616 pg_opclass = super::operator_classes::pg_opclass {
        oid OID, opcmethod OID, opcname NAME, opcnamespace OID, opcowner OID, opcfamily OID, opcintype OID,
        opcdefault BOOL, opckeytype OID,
    }
    2617 pg_operator = super::functions::pg_operator {
        oid OID, oprname NAME, oprnamespace OID, oprowner OID, oprkind CHAR, oprcanmerge BOOL, oprcanhash BOOL,
        oprleft OID, oprright OID, oprresult OID, oprcom OID, oprnegate OID, oprcode REGPROC, oprrest REGPROC,
        oprjoin REGPROC,
    }
    2753 pg_opfamily = super::operator_classes::pg_opfamily {
        oid OID, opfmethod OID, opfname NAME, opfnamespace OID, opfowner OID,
    }
    6243 pg_parameter_acl = none {
        oid OID, parname TEXT, paracl ACLITEM_ARRAY,
    }
    3350 pg_partitioned_table = none {
        partrelid OID, partstrat CHAR, partnatts INT2, partdefid OID, partattrs INT2VECTOR, partclass OIDVECTOR,
        partcollation OIDVECTOR, partexprs PG_NODE_TREE,
    }
    3256 pg_policy = super::policies::pg_policy {
        oid OID, polname NAME, polrelid OID, polcmd CHAR, polpermissive BOOL, polroles OID_ARRAY,
        polqual PG_NODE_TREE, polwithcheck PG_NODE_TREE,
    }
    1255 pg_proc = super::functions::pg_proc {
        oid OID, proname NAME, pronamespace OID, proowner OID, prolang OID, procost FLOAT4, prorows FLOAT4,
        provariadic OID, prosupport REGPROC, prokind CHAR, prosecdef BOOL, proleakproof BOOL, proisstrict BOOL,
        proretset BOOL, provolatile CHAR, proparallel CHAR, pronargs INT2, pronargdefaults INT2, prorettype OID,
        proargtypes OIDVECTOR, proallargtypes OID_ARRAY, proargmodes CHAR_ARRAY, proargnames TEXT_ARRAY,
        proargdefaults PG_NODE_TREE, protrftypes OID_ARRAY, prosrc TEXT, probin TEXT, prosqlbody PG_NODE_TREE,
        proconfig TEXT_ARRAY, proacl ACLITEM_ARRAY,
    }
    6104 pg_publication = none {
        oid OID, pubname NAME, pubowner OID, puballtables BOOL, pubinsert BOOL, pubupdate BOOL, pubdelete BOOL,
        pubtruncate BOOL, pubviaroot BOOL,
    }
    6237 pg_publication_namespace = none {
        oid OID, pnpubid OID, pnnspid OID,
    }
    6106 pg_publication_rel = none {
        oid OID, prpubid OID, prrelid OID, prqual PG_NODE_TREE, prattrs INT2VECTOR,
    }
    3541 pg_range = super::types::pg_range {
        rngtypid OID, rngsubtype OID, rngmultitypid OID, rngcollation OID, rngsubopc OID, rngcanonical REGPROC,
        rngsubdiff REGPROC,
    }
    6000 pg_replication_origin = none {
        roident OID, roname TEXT,
    }
    2618 pg_rewrite = super::relations::pg_rewrite {
        oid OID, rulename NAME, ev_class OID, ev_type CHAR, ev_enabled CHAR, is_instead BOOL, ev_qual PG_NODE_TREE,
        ev_action PG_NODE_TREE,
    }
    3596 pg_seclabel = none {
        objoid OID, classoid OID, objsubid INT4, provider TEXT, label TEXT,
    }
    2224 pg_sequence = super::relations::pg_sequence {
        seqrelid OID, seqtypid OID, seqstart INT8, seqincrement INT8, seqmax INT8, seqmin INT8, seqcache INT8,
        seqcycle BOOL,
    }
    1214 pg_shdepend = none {
        dbid OID, classid OID, objid OID, objsubid INT4, refclassid OID, refobjid OID, deptype CHAR,
    }
    2396 pg_shdescription = super::databases::pg_shdescription {
        objoid OID, classoid OID, description TEXT,
    }
    3592 pg_shseclabel = none {
        objoid OID, classoid OID, provider TEXT, label TEXT,
    }
    2619 pg_statistic = super::statistics::pg_statistic {
        starelid OID, staattnum INT2, stainherit BOOL, stanullfrac FLOAT4, stawidth INT4, stadistinct FLOAT4,
        stakind1 INT2, stakind2 INT2, stakind3 INT2, stakind4 INT2, stakind5 INT2, staop1 OID, staop2 OID, staop3 OID,
        staop4 OID, staop5 OID, stacoll1 OID, stacoll2 OID, stacoll3 OID, stacoll4 OID, stacoll5 OID,
        stanumbers1 FLOAT4_ARRAY, stanumbers2 FLOAT4_ARRAY, stanumbers3 FLOAT4_ARRAY, stanumbers4 FLOAT4_ARRAY,
        stanumbers5 FLOAT4_ARRAY, stavalues1 ANYARRAY, stavalues2 ANYARRAY, stavalues3 ANYARRAY, stavalues4 ANYARRAY,
        stavalues5 ANYARRAY,
    }
    3381 pg_statistic_ext = none {
        oid OID, stxrelid OID, stxname NAME, stxnamespace OID, stxowner OID, stxstattarget INT4, stxkeys INT2VECTOR,
        stxkind CHAR_ARRAY, stxexprs PG_NODE_TREE,
    }
    3429 pg_statistic_ext_data = none {
        stxoid OID, stxdinherit BOOL, stxdndistinct TEXT, stxddependencies TEXT, stxdmcv TEXT, stxdexpr TEXT,
    }
    6100 pg_subscription = none {
        oid OID, subdbid OID, subskiplsn TEXT, subname NAME, subowner OID, subenabled BOOL, subbinary BOOL,
        substream BOOL, subtwophasestate CHAR, subdisableonerr BOOL, subconninfo TEXT, subslotname NAME,
        subsynccommit TEXT, subpublications TEXT_ARRAY,
    }
    6102 pg_subscription_rel = none {
        srsubid OID, srrelid OID, srsubstate CHAR, srsublsn TEXT,
    }
    1213 pg_tablespace = super::databases::pg_tablespace {
        oid OID, spcname NAME, spcowner OID, spcacl ACLITEM_ARRAY, spcoptions TEXT_ARRAY,
    }
    3576 pg_transform = none {
        oid OID, trftype OID, trflang OID, trffromsql REGPROC, trftosql REGPROC,
    }
    2620 pg_trigger = super::triggers::pg_trigger {
        oid OID, tgrelid OID, tgparentid OID, tgname NAME, tgfoid OID, tgtype INT2, tgenabled CHAR, tgisinternal BOOL,
        tgconstrrelid OID, tgconstrindid OID, tgconstraint OID, tgdeferrable BOOL, tginitdeferred BOOL, tgnargs INT2,
        tgattr INT2VECTOR, tgargs BYTEA, tgqual PG_NODE_TREE, tgoldtable NAME, tgnewtable NAME,
    }
    3602 pg_ts_config = super::search::pg_ts_config {
        oid OID, cfgname NAME, cfgnamespace OID, cfgowner OID, cfgparser OID,
    }
    3603 pg_ts_config_map = super::search::pg_ts_config_map {
        mapcfg OID, maptokentype INT4, mapseqno INT4, mapdict OID,
    }
    3600 pg_ts_dict = super::search::pg_ts_dict {
        oid OID, dictname NAME, dictnamespace OID, dictowner OID, dicttemplate OID, dictinitoption TEXT,
    }
    3601 pg_ts_parser = super::search::pg_ts_parser {
        oid OID, prsname NAME, prsnamespace OID, prsstart REGPROC, prstoken REGPROC, prsend REGPROC,
        prsheadline REGPROC, prslextype REGPROC,
    }
    3764 pg_ts_template = super::search::pg_ts_template {
        oid OID, tmplname NAME, tmplnamespace OID, tmplinit REGPROC, tmpllexize REGPROC,
    }
    1247 pg_type = super::types::pg_type {
        oid OID, typname NAME, typnamespace OID, typowner OID, typlen INT2, typbyval BOOL, typtype CHAR,
        typcategory CHAR, typispreferred BOOL, typisdefined BOOL, typdelim CHAR, typrelid OID, typsubscript REGPROC,
        typelem OID, typarray OID, typinput REGPROC, typoutput REGPROC, typreceive REGPROC, typsend REGPROC,
        typmodin REGPROC, typmodout REGPROC, typanalyze REGPROC, typalign CHAR, typstorage CHAR, typnotnull BOOL,
        typbasetype OID, typtypmod INT4, typndims INT4, typcollation OID, typdefaultbin PG_NODE_TREE, typdefault TEXT,
        typacl ACLITEM_ARRAY,
    }
    1418 pg_user_mapping = none {
        oid OID, umuser OID, umserver OID, umoptions TEXT_ARRAY,
    }
};
